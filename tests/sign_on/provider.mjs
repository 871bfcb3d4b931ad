// An identity provider for the tests: oidc-provider with rotation of refresh tokens and detection of
// their reuse, a form that accepts any name, and a log of all requests for tokens.
//
// Environment: CLIENTS (JSON), STATE (a JSON file that the tests rewrite, with the accounts and the
// failures to simulate) and LOG (a file with a JSON line per request for tokens). Prints its issuer.
import { generateKeyPairSync } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

import { Provider } from "oidc-provider";

const state = () => JSON.parse(readFileSync(process.env.STATE, "utf8"));
const log = (entry) => appendFileSync(process.env.LOG, `${JSON.stringify(entry)}\n`);

const signingKey = () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256" };
};

const configuration = {
  clients: JSON.parse(process.env.CLIENTS),
  jwks: { keys: [signingKey()] },
  cookies: { keys: ["the cookies of a test"] },
  claims: { openid: ["sub"], email: ["email"], profile: ["name", "groups"] },
  // Puts the claims into ID tokens, as most providers do.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: {
      enabled: true,
      // The page of the provider has no style, and its form is submitted with this button.
      logoutSource: async (ctx, form) => {
        ctx.body = `<!doctype html><title>Provider</title>${form}<button form="op.logoutForm" name="logout" value="yes">Sign out at the provider</button>`;
      },
    },
  },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: async (_, id) => {
    const account = state().accounts[id];
    return account && { accountId: id, claims: async () => ({ sub: id, ...account }) };
  },
  // Consent is given in advance.
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({
      clientId: ctx.oidc.client.clientId,
      accountId: ctx.oidc.session.accountId,
    });
    grant.addOIDCScope("openid email profile offline_access");
    await grant.save();
    return grant;
  },
};

const FORM = `<!doctype html><title>Provider</title><h1>Identity provider</h1>
<form method="post"><label>Account <input name="account" autofocus></label> <button>Continue</button></form>`;

const formOf = async (request) => {
  let body = "";
  for await (const part of request) body += part;
  return new URLSearchParams(body);
};

const server = createServer();
server.listen(0, "127.0.0.1");
server.once("listening", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);
  provider.use(async (ctx, next) => {
    if (ctx.path.startsWith("/interaction/")) {
      if (ctx.method === "GET") {
        ctx.type = "html";
        ctx.body = FORM;
        return;
      }
      const login = { accountId: (await formOf(ctx.req)).get("account") };
      ctx.respond = false;
      await provider.interactionFinished(ctx.req, ctx.res, { login });
      return;
    }
    if (ctx.path !== "/token") {
      await next();
      return;
    }
    const { token_status: status, token_delay_ms: delay = 0 } = state();
    log({ event: "received" });
    if (status) {
      ctx.status = status;
      ctx.body = "The provider is down.";
      log({ event: "answered", status });
      return;
    }
    await pause(delay);
    await next();
    log({ event: "answered", grant: ctx.oidc?.params?.grant_type, status: ctx.status, error: ctx.body?.error });
  });
  server.on("request", provider.callback());
  const { port } = server.address();
  // Keeps the process alive while it refuses connections.
  setInterval(() => {}, 60_000);
  process.on("SIGUSR2", () => {
    if (server.listening) {
      server.close(() => console.log("closed"));
      server.closeAllConnections();
    } else {
      server.listen(port, "127.0.0.1", () => console.log("open"));
    }
  });
  console.log(`issuer ${issuer}`);
});
