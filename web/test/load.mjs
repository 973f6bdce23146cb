// SPDX-License-Identifier: PostgreSQL
// Loads a module of the page, for tests that need no browser.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

export async function load(path) {
    const { outputFiles } = await build({
        entryPoints: [fileURLToPath(new URL(`../src/${path}`, import.meta.url))],
        bundle: true,
        write: false,
        format: "esm",
    });
    return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
