// SPDX-License-Identifier: PostgreSQL
/** Copies a text to the clipboard. */
import { button } from "./dom";

/** How long the button says that it has copied, in ms. */
const SHOWN = 2000;

/** A page that was not loaded over TLS has no clipboard, but can copy what is selected. */
async function copy(text: string, from: HTMLElement): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        getSelection()?.selectAllChildren(from);
        const done = document.execCommand("copy");
        // While something is selected, a live page does not reload.
        if (done) getSelection()?.removeAllRanges();
        return done;
    }
}

/** A button that copies the text of an element. */
export function copyButton(of: HTMLElement): HTMLButtonElement {
    const copier = button("Copy", "Copy to the clipboard", () => {
        void copy(of.textContent ?? "", of).then((done) => {
            copier.textContent = done ? "Copied" : "Press Ctrl-C";
            setTimeout(() => (copier.textContent = "Copy"), SHOWN);
        });
    });
    copier.classList.add("copy");
    return copier;
}
