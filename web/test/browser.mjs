// SPDX-License-Identifier: PostgreSQL
// Opens pages in a real browser, and records everything that a page must not do.
import { chromium } from "playwright-core";
import { accessSync, constants } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fill } from "./fill.mjs";

export const template = fileURLToPath(new URL("../../build/web/report.html", import.meta.url));

/** How long to wait for something that must happen. */
const PATIENCE_MS = 120_000;

/** PGTALLY_CHROMIUM, or a browser on the PATH. */
function chromiumPath() {
    const named = process.env.PGTALLY_CHROMIUM;
    if (named) return named;
    const names = ["chromium", "chromium-browser", "google-chrome"];
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
        for (const name of names) {
            const path = join(folder, name);
            try {
                accessSync(path, constants.X_OK);
                return path;
            } catch {
                // Not in this directory.
            }
        }
    }
    throw new Error("no chromium on the path: install it (make bootstrap does), or set PGTALLY_CHROMIUM");
}

/** `open` and `visit` return a page, whose `seen` lists its `requests`, `violations` and `errors`; `close` it at the end. */
export async function startBrowser() {
    const folder = await mkdtemp(join(tmpdir(), "pgtally-web-"));
    // Chromium's sandbox does not work for root.
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const browser = await chromium.launch({ executablePath: chromiumPath(), args, timeout: PATIENCE_MS });
    let pages = 0;

    async function open(report, options = {}, body = undefined, fragment = "") {
        const file = join(folder, `${pages++}.html`);
        await writeFile(file, fill(await readFile(template, "utf8"), report, body));
        return visit(pathToFileURL(file).href + fragment, options);
    }

    /** Opens the page at an address; blocks requests outside of its path. */
    async function visit(address, options = {}) {
        const below = address.split(/[?#]/)[0];
        const context = await browser.newContext({
            viewport: { width: 1280, height: 900 },
            deviceScaleFactor: 1,
            timezoneId: "Europe/Berlin",
            colorScheme: "light",
            acceptDownloads: true,
            ...options,
        });
        context.setDefaultTimeout(PATIENCE_MS);
        const page = await context.newPage();
        const seen = { requests: [], violations: [], errors: [] };
        // Requests to anything else are counted and blocked.
        await context.route("**/*", (route) => {
            const url = route.request().url();
            if (url.startsWith(below)) return route.continue();
            seen.requests.push(url);
            return route.abort();
        });
        page.on("console", (message) => {
            if (/content security policy/i.test(message.text())) seen.violations.push(message.text());
            else if (message.type() === "error") seen.errors.push(message.text());
        });
        page.on("pageerror", (error) => seen.errors.push(String(error)));
        const session = await context.newCDPSession(page);
        await session.send("Performance.enable");
        await page.goto(address);
        /** Run time of scripts since the page was opened, in ms. */
        const scriptTime = async () => {
            const { metrics } = await session.send("Performance.getMetrics");
            return 1000 * metrics.find(({ name }) => name === "ScriptDuration").value;
        };
        return Object.assign(page, { seen, scriptTime });
    }

    async function close() {
        await browser.close();
        await rm(folder, { recursive: true, force: true });
    }
    return { open, visit, close };
}

/** Scrolls an element into view and waits until its content is drawn. */
export async function show(page, selector, drawn = "") {
    const centre = () => page.locator(selector).evaluate((it) => it.scrollIntoView({ block: "center" }));
    await centre();
    if (drawn) await page.locator(`${selector} ${drawn}`).waitFor();
    // Drawing has made the page taller.
    await centre();
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
}

/**
 * Waits until the result of `read` is true, and returns it. A live page reloads by itself when there is more to show; reading
 * that was interrupted by that is repeated.
 */
export async function until(read) {
    const end = Date.now() + PATIENCE_MS;
    while (Date.now() < end) {
        const found = await steadily(read);
        if (found) return found;
        await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not so after ${PATIENCE_MS / 1000} s: ${read}`);
}

/** The result of `read`, on a page that does not reload meanwhile. */
export async function steadily(read) {
    for (;;) {
        try {
            return await read();
        } catch (error) {
            if (!/context was destroyed|navigation/i.test(error.message)) throw error;
        }
    }
}

/** The position of a chart's plot in the page: left, top, width, height. */
export async function plotBox(page, id) {
    return page.locator(`#${id} .u-over`).boundingBox();
}

/** The colour of a chart's canvas, `across` from the left and `down` from the top (0 to 1) of its plot, as #rrggbb. */
export async function pixel(page, id, across, down) {
    return page.evaluate(
        ([id, across, down]) => {
            const canvas = document.querySelector(`#${id} canvas`);
            const over = document.querySelector(`#${id} .u-over`);
            const scale = canvas.width / canvas.clientWidth;
            const x = Math.round((over.offsetLeft + across * over.clientWidth) * scale);
            const y = Math.round((over.offsetTop + down * over.clientHeight) * scale);
            const [r, g, b, a] = canvas.getContext("2d").getImageData(x, y, 1, 1).data;
            return a ? "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("") : "none";
        },
        [id, across, down],
    );
}

/** The visible range, from the bar, because the texts of a chart's time axis cannot be read from a canvas. */
export const inView = (page) => page.locator(".range").innerText();
