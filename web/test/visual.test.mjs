// SPDX-License-Identifier: PostgreSQL
/*
 * Compares pictures of pages with those in pictures/, with a tolerance. Letters are boxes of equal size, so that pictures do not
 * depend on the fonts of a machine, and are compared at an eighth of their size. After a change that is meant,
 * PGTALLY_PICTURES=write node --test test/visual.test.mjs writes them again: look at them.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { boxes } from "./boxes.mjs";
import { startBrowser } from "./browser.mjs";
import { PAGES, WINDOWS } from "./pages.mjs";

const pictures = fileURLToPath(new URL("pictures/", import.meta.url));
const writes = process.env.PGTALLY_PICTURES === "write";
/** A picture is compared at this part of its size. */
const SCALE = 1 / 8;
/** Points of the small picture that differ by more than DIFFERENT of 255 in a colour, at most; as a share. */
const DIFFERENT = 40;
const TOLERATED = 0.01;

const style = `@font-face { font-family: Boxes; src: url(data:font/ttf;base64,${boxes().toString("base64")}); }
* { font-family: Boxes !important; caret-color: transparent !important; }`;

let browser;
let folder;
let pages = 0;
before(async () => {
    browser = await startBrowser();
    folder = await mkdtemp(join(tmpdir(), "pgtally-pictures-"));
});
after(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
});

/** The picture as PNG, at SCALE, and the number of its points that differ from another one. */
async function compared(page, shot, kept) {
    return page.evaluate(
        async ([shot, kept, scale, different]) => {
            const load = async (base64) => {
                const image = new Image();
                image.src = `data:image/png;base64,${base64}`;
                await image.decode();
                return image;
            };
            const small = (image, width, height) => {
                const canvas = document.createElement("canvas");
                [canvas.width, canvas.height] = [width, height];
                const pen = canvas.getContext("2d");
                pen.imageSmoothingQuality = "high";
                pen.drawImage(image, 0, 0, width, height);
                return canvas;
            };
            const image = await load(shot);
            const [width, height] = [image.width, image.height].map((size) => Math.round(size * scale));
            const now = small(image, width, height);
            const png = now.toDataURL("image/png").split(",")[1];
            if (!kept) return { png, share: 1 };
            const before = await load(kept);
            if (before.width !== width || before.height !== height) return { png, share: 1 };
            const [a, b] = [now, small(before, width, height)].map(
                (canvas) => canvas.getContext("2d").getImageData(0, 0, width, height).data,
            );
            let count = 0;
            for (let at = 0; at < a.length; at += 4) {
                const differs = [0, 1, 2].some((channel) => Math.abs(a[at + channel] - b[at + channel]) > different);
                count += differs ? 1 : 0;
            }
            return { png, share: count / (width * height) };
        },
        [shot, kept, SCALE, DIFFERENT],
    );
}

async function picture(page, [make, fragment, drawn]) {
    const file = join(folder, `${pages++}.html`);
    await writeFile(file, await make());
    const opened = await browser.visit(pathToFileURL(file).href + fragment, { ...page, bypassCSP: true });
    await opened.locator(drawn).first().waitFor();
    await opened.addStyleTag({ content: style });
    await opened.evaluate(async () => {
        await document.fonts.load("16px Boxes");
        await document.fonts.ready;
    });
    assert.ok(await opened.evaluate(() => document.fonts.check("16px Boxes")), "the font was not loaded");
    await opened.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const shot = (await opened.screenshot({ animations: "disabled" })).toString("base64");
    return { opened, shot };
}

for (const [name, page] of Object.entries(PAGES)) {
    for (const [window, viewport] of Object.entries(WINDOWS)) {
        for (const colorScheme of ["light", "dark"]) {
            const file = `${name}-${window}-${colorScheme}.png`;
            test(`${name} looks as in pictures/${file}`, async () => {
                const { opened, shot } = await picture({ viewport, colorScheme }, page);
                const kept = writes ? null : (await readFile(pictures + file)).toString("base64");
                const { png, share } = await compared(opened, shot, kept);
                if (writes) {
                    await mkdir(pictures, { recursive: true });
                    await writeFile(pictures + file, Buffer.from(png, "base64"));
                } else {
                    const now = join(tmpdir(), `pgtally-${file}`);
                    if (share > TOLERATED) await writeFile(now, Buffer.from(shot, "base64"));
                    assert.ok(share <= TOLERATED, `${(share * 100).toFixed(1)} % of it differ; see ${now}`);
                }
                await opened.context().close();
            });
        }
    }
}

test("a picture that differs in a small part is noticed", async () => {
    const { opened, shot } = await picture({ viewport: WINDOWS.wide, colorScheme: "light" }, PAGES.report);
    const { png } = await compared(opened, shot, null);
    assert.equal((await compared(opened, shot, png)).share, 0);
    await opened.addStyleTag({ content: "#verdict { display: none !important; }" });
    const other = (await opened.screenshot({ animations: "disabled" })).toString("base64");
    assert.ok((await compared(opened, other, png)).share > 2 * TOLERATED);
    await opened.context().close();
});
