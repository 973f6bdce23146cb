// SPDX-License-Identifier: PostgreSQL
// Every control of every page can be reached with the Tab key, and shows that it was.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { startBrowser } from "./browser.mjs";
import { PAGES } from "./pages.mjs";

let browser;
let folder;
before(async () => {
    browser = await startBrowser();
    folder = await mkdtemp(join(tmpdir(), "pgtally-keyboard-"));
});
after(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
});

/** Presses Tab until the page has been left, and returns the controls without focus, and those without an outline. */
async function missed(page) {
    const controls = await page.evaluate(() => {
        const all = [...document.querySelectorAll("a[href], button, input, select, summary, textarea, [tabindex='0'], [role='button']")];
        const seen = all.filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.tabIndex >= 0);
        seen.forEach((it, i) => (it.dataset.control = String(i)));
        return seen.map((it) => `${it.tagName} ${it.className} ${it.textContent?.trim().slice(0, 30)}`);
    });
    const reached = new Set();
    const bare = new Set();
    for (let i = 0; i < 3 * controls.length + 10; i++) {
        await page.keyboard.press("Tab");
        const now = await page.evaluate(() => {
            const it = document.activeElement;
            const { outlineStyle, outlineWidth } = getComputedStyle(it);
            return { control: it?.dataset.control, outline: outlineStyle !== "none" && parseFloat(outlineWidth) > 0 };
        });
        if (now.control === undefined) {
            if (reached.size >= controls.length) break;
            continue;
        }
        if (reached.has(now.control) && reached.size >= controls.length) break;
        reached.add(now.control);
        if (!now.outline) bare.add(controls[now.control]);
    }
    return { without: controls.filter((_, i) => !reached.has(String(i))), bare: [...bare] };
}

for (const [name, [make, fragment, drawn]] of Object.entries(PAGES)) {
    test(`the keyboard reaches every control of the page ${name}, and shows where it is`, async () => {
        const file = join(folder, `${name}.html`);
        await writeFile(file, await make());
        const page = await browser.visit(pathToFileURL(file).href + fragment);
        await page.locator(drawn).first().waitFor();
        assert.deepEqual(await missed(page), { without: [], bare: [] });
        await page.context().close();
    });
}
