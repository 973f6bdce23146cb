// SPDX-License-Identifier: PostgreSQL
// Builds the page templates: each is a single file with script and style, into which the command inserts a report, a profile or a
// trace. Usage: node build.mjs [FOLDER]
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? `${here}/../build/web`;

/** The oldest supported browsers, all from 2021. */
const browsers = ["chrome94", "firefox93", "safari15"];

/** Rules for the dark theme: if the system asks for it and the reader has not chosen light, or if the reader has chosen it. */
const inDark = (declarations) =>
    `@media(prefers-color-scheme:dark){:root:not([data-theme=light]){${declarations}}}` +
    `:root[data-theme=dark]{${declarations}}`;

/** The style sheet contains the dark theme once, for the reader's choice; this adds it for the system's setting. */
const darkTheme = {
    name: "dark theme",
    setup({ onLoad }) {
        onLoad({ filter: /tokens\.css$/ }, async ({ path }) => {
            const contents = (await readFile(path, "utf8")).replace(
                /:root\[data-theme="dark"\] \{([^}]*)\}/,
                (_, declarations) => inDark(declarations),
            );
            if (!contents.includes("prefers-color-scheme")) throw new Error(`${path} has no dark theme`);
            return { contents, loader: "css" };
        });
    },
};

async function bundle(entry) {
    const { outputFiles } = await build({
        entryPoints: [`${here}/src/${entry}`],
        bundle: true,
        minify: true,
        write: false,
        charset: "utf8",
        format: "iife",
        target: browsers,
        legalComments: "none",
        plugins: [darkTheme],
    });
    return outputFiles[0].text.trim();
}

/** The palette's colours, and the ink on each, as variables of the style sheet, so that they are defined once. */
async function classColours() {
    const { outputFiles } = await build({
        entryPoints: [`${here}/src/look/palette.ts`],
        bundle: true,
        write: false,
        format: "esm",
    });
    const { CLASSES, inkOn, shade } = await import(
        `data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`
    );
    const pair = (name, colour) => `--${name}:${colour};--on-${name}:${inkOn(colour)}`;
    // The second shade is for the kernel's code.
    const variables = (theme) =>
        CLASSES.flatMap((one) => [
            pair(one, shade(one, 0, 1, theme)),
            pair(`${one}-2`, shade(one, 1, 2, theme)),
        ]).join(";");
    return `:root{${variables("light")}}${inDark(variables("dark"))}`;
}

// The report contains uPlot, so it must contain uPlot's licence.
const uplot = await readFile(`${here}/node_modules/uplot/LICENSE`, "utf8");
const [colours, template] = await Promise.all([
    classColours(),
    readFile(`${here}/src/template.html`, "utf8"),
]);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

async function page(output, entry, sheet, licences) {
    const [code, rules] = await Promise.all([bundle(entry), bundle(sheet)]);
    const script = `/* pgtally, PostgreSQL Licence.${licences.replace(/\*\//g, "")}*/\n${code}`;
    const style = rules + colours;
    if (/<\/(script|style)/i.test(script + style)) throw new Error("the bundle would end its own element");
    const parts = { script, style, "script-hash": hash(script), "style-hash": hash(style) };
    const filled = template.replace(/<!--build:([a-z-]+)-->/g, (_, name) => {
        if (!(name in parts)) throw new Error(`the template asks for ${name}`);
        return parts[name];
    });
    await writeFile(`${output}.new`, filled);
    await rename(`${output}.new`, output);
}

await mkdir(folder, { recursive: true });
await Promise.all([
    page(`${folder}/report.html`, "main.ts", "page.css", ` With uPlot:\n${uplot}`),
    page(`${folder}/flame.html`, "flame/page.ts", "flame/page.css", " "),
    page(`${folder}/waterfall.html`, "waterfall/page.ts", "waterfall/page.css", " "),
]);
