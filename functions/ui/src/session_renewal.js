// Renews the session of a user who has signed in at an identity provider, once for all tabs, and
// repeats requests that the server has refused because the session was overdue.
//
// The server sets a cookie with the time at which the session has to be renewed, in seconds since
// 1970. Sessions that were opened with a password have no such cookie and are never renewed.
(() => {
  const PATH = "ajax-api/2.0/mlflow/users/renew-session";
  const LOCK = "mlflow-session-renewal";
  // The renewal begins at a random time within this range before it is due, in ms, so that the tabs
  // of a browser rarely begin at the same moment.
  const EARLIEST = 60_000;
  const LATEST = 20_000;
  // Minimum pause between two renewals, in ms.
  const PAUSE = 15_000;

  const send = window.fetch.bind(window);
  // The server's clock minus that of this machine, in ms.
  let skew = 0;
  let pending = null;
  let timer;

  const renewBy = () => {
    const found = document.cookie.match(/(?:^|; )mlflow_renew_by=(\d{1,12})(?:;|$)/);
    return found ? Number(found[1]) * 1000 : null;
  };

  // Web locks only exist in secure contexts. Without them, several tabs may send the request. The
  // server then renews the session once.
  const locked = (work) => (navigator.locks ? navigator.locks.request(LOCK, work) : work());

  const request = async () => {
    const answer = await send(PATH, { method: "POST" });
    const now = Date.parse(answer.headers.get("date") ?? "");
    if (!Number.isNaN(now)) {
      skew = now - Date.now();
    }
    if (answer.status === 401) {
      // The session has ended. Without a session, the page leads to the sign-in page.
      location.reload();
    }
    // While the provider cannot be reached, the renewal is postponed, and the session stays valid.
    const due = renewBy();
    return answer.ok || (due !== null && due > Date.now() + skew);
  };

  // Returns whether the session is valid. All requests of a tab wait for the same renewal.
  const renew = () => {
    const seen = renewBy();
    pending ??= locked(() => (renewBy() === seen ? request() : true))
      .catch(() => false)
      .finally(() => {
        pending = null;
        schedule();
      });
    return pending;
  };

  const schedule = () => {
    clearTimeout(timer);
    const due = renewBy();
    if (due !== null) {
      const ahead = LATEST + Math.random() * (EARLIEST - LATEST);
      timer = setTimeout(renew, Math.max(due - ahead - skew - Date.now(), PAUSE));
    }
  };

  window.fetch = async (input, init) => {
    // The body of a Request can be sent only once.
    const again = input instanceof Request ? input.clone() : input;
    const answer = await send(input, init);
    if (answer.status !== 401 || answer.headers.get("mlflow-session") !== "renew") {
      return answer;
    }
    return (await renew()) ? send(again, init).catch(() => answer) : answer;
  };

  schedule();
})();
