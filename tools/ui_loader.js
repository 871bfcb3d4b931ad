// Makes webpack load bundles instead of single chunks, a few at a time, and repeats downloads that
// fail, for example because too many functions run at the same time. Runs before the entry script,
// as a chunk without modules. `ui_bundles.py` fills in the names.
(globalThis.LIST_NAME = globalThis.LIST_NAME || []).push([["bundles"], {}, (webpack) => {
    const bundles = BUNDLES;
    const scriptsAtOnce = SCRIPTS_AT_ONCE;
    // Browsers that failed at the same time try again at different times. In one browser, chunks of a
    // bundle try again at the same time, and share the download.
    const spread = 0.5 + Math.random();
    const pausesMs = [500, 1000, 2000, 4000].map((pause) => pause * spread);

    const files = new Map(Object.entries(bundles).flatMap(([file, chunks]) => chunks.map((chunk) => [chunk, file])));
    const { e: load, l: download, u: fileName } = webpack;
    if (![load, download, fileName].every((part) => typeof part === "function")) return;

    // The file of a chunk.
    webpack.u = (chunk) => files.get(String(chunk)) ?? fileName(chunk);

    // Downloads a script. Chunks in one bundle share its download.
    const callbacks = new Map();
    const waiting = [];
    webpack.l = (url, done, ...names) => {
        if (callbacks.has(url)) return callbacks.get(url).push(done);
        callbacks.set(url, [done]);
        waiting.push([url, names]);
        proceed();
    };
    let running = 0;
    const proceed = () => {
        while (running < scriptsAtOnce && waiting.length) {
            running += 1;
            const [url, names] = waiting.shift();
            download(url, (event) => {
                running -= 1;
                proceed();
                const called = callbacks.get(url);
                callbacks.delete(url);
                for (const done of called) done(event);
            }, ...names);
        }
    };

    // Loads the script and the style sheet of a chunk.
    webpack.e = async (chunk) => {
        for (const [attempt, pause] of pausesMs.entries()) {
            try {
                return await load(chunk);
            } catch {
                await new Promise((resolve) => setTimeout(resolve, pause));
                // The last attempts load the chunk's own file.
                if (attempt === 2) files.delete(String(chunk));
            }
        }
        return load(chunk);
    };
}]);
