// SPDX-License-Identifier: PostgreSQL
/*
 * What a reader sees first of recorded problems: pictures of the report's first screen in windows of two sizes, and the text of the
 * first screen of `tally top` and `tally report` in a terminal of 80x24. script/first-screens runs it. Someone has to look at them.
 *
 * Usage: node test/first-screens.mjs TALLY FOLDER [NAME...]; NAME is a recording of crates/tally/tests/recordings.
 */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { startBrowser, template, until } from "./browser.mjs";
import { WINDOWS } from "./pages.mjs";

const TERMINAL = { width: 80, height: 24 };
const recordings = fileURLToPath(new URL("../../crates/tally/tests/recordings/", import.meta.url));
const [tally, folder, ...named] = process.argv.slice(2);
const env = { ...process.env, TZ: "UTC", LC_ALL: "C.UTF-8" };

/** Unpacks a recording: its description is the first line, its journal the others (crates/tally/tests/support/fixtures.rs). */
async function unpack(name, directory) {
    const text = gunzipSync(await readFile(`${recordings}${name}.gz`)).toString();
    const end = text.indexOf("\n");
    const about = text.slice(0, end);
    const journals = join(directory, `journal/host=${JSON.parse(about).host}`);
    await mkdir(journals, { recursive: true });
    await writeFile(join(directory, "recording.json"), about);
    await writeFile(join(journals, "20000101T000000.log"), text.slice(end + 1));
}

/** The command's page in the template as it is built now: a change in web/ needs no build of the command. */
async function inTemplate(page) {
    const begins = { title: "<title>", body: "<body>", data: '<script type="application/json" id="report">' };
    const ends = { title: "</title>", body: begins.data, data: "</script>" };
    const part = (name) => {
        const from = page.indexOf(begins[name]) + begins[name].length;
        return page.slice(from, page.indexOf(ends[name], from));
    };
    return (await readFile(template, "utf8")).replace(/<!--pgtally:([a-z]+)-->/g, (_, name) => part(name));
}

/** The first lines that a command writes into a terminal, once they contain a word. */
async function terminal(work, words, ...command) {
    // A server of tmux that is told to end still accepts connections for a moment.
    const socket = join(await mkdtemp(join(work, "tmux-")), "socket");
    const tmux = (...args) => execFileSync("tmux", ["-S", socket, "-f", "/dev/null", ...args], { encoding: "utf8", env });
    const { width, height } = TERMINAL;
    const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    tmux("start-server", ";", "set-option", "-g", "history-limit", "50000", ";", "new-session", "-d", "-x", width, "-y", height, `${quoted}; exec cat`);
    try {
        const seen = () => tmux("capture-pane", "-p", "-S", "-").split("\n").slice(0, height).join("\n");
        await until(() => words.test(seen()));
        return `${seen().trimEnd()}\n`;
    } finally {
        tmux("kill-server");
    }
}

const names = named.length ? named : (await readdir(recordings)).flatMap((file) => (file.endsWith(".gz") ? [file.slice(0, -3)] : []));
await mkdir(folder, { recursive: true });
const work = await mkdtemp(join(tmpdir(), "pgtally-screens-"));
const browser = await startBrowser();
try {
    for (const name of names) {
        const recording = join(work, name);
        await unpack(name, recording);
        const file = join(work, `${name}.html`);
        execFileSync(tally, ["report", recording, "-o", file], { stdio: "ignore", env });
        await writeFile(file, await inTemplate(await readFile(file, "utf8")));
        for (const [window, viewport] of Object.entries(WINDOWS)) {
            const page = await browser.visit(pathToFileURL(file).href, { viewport, timezoneId: "UTC" });
            await page.locator("#chart-activity canvas").waitFor();
            await page.screenshot({ path: join(folder, `${name}-${window}.png`) });
            await page.context().close();
        }
        const top = await terminal(work, /^(The last|Nothing)/m, tally, "top", "--view", "diagnoses", "--replay", recording);
        const report = await terminal(work, /^Findings/m, tally, "report", recording);
        await writeFile(join(folder, `${name}.txt`), `${top}\n${"=".repeat(TERMINAL.width)}\n${report}`);
        await rm(recording, { recursive: true });
        console.log(join(folder, name));
    }
} finally {
    await browser.close();
    await rm(work, { recursive: true, force: true });
}
