// SPDX-License-Identifier: PostgreSQL
/**
 * Light or dark: the system's setting until the reader chooses. Paper is always light.
 */
import type { ThemeName } from "./palette";

/** What must know of another theme: a page's view. */
export interface Themed {
    readonly theme: ThemeName | undefined;
    setTheme(theme: ThemeName): void;
}

/** The reader's choice; "system" follows the system. */
export type Choice = "system" | ThemeName;

const CHOICES: readonly Choice[] = ["system", "light", "dark"];
const KEPT_AS = "pgtally.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");

let choice: Choice = remembered();
let printing = false;

/** A page opened from a file may have no storage. */
function remembered(): Choice {
    try {
        const kept = localStorage.getItem(KEPT_AS);
        return CHOICES.find((one) => one === kept) ?? "system";
    } catch {
        return "system";
    }
}

function remember(): void {
    try {
        localStorage.setItem(KEPT_AS, choice);
    } catch {
        // See remembered().
    }
}

/** Whether the page is being printed. */
export const onPaper = (): boolean => printing;

/** The current theme. */
export function current(): ThemeName {
    if (printing) return "light";
    if (choice !== "system") return choice;
    return systemDark.matches ? "dark" : "light";
}

function apply(view: Themed): void {
    // The style sheet knows the system's setting; the attribute is only for a different choice.
    const root = document.documentElement;
    if (choice === "system" && !printing) delete root.dataset["theme"];
    else root.dataset["theme"] = current();
    if (view.theme !== current()) view.setTheme(current());
}

/** Applies the theme, and again when the system's setting changes or the page is printed. */
export function followTheme(view: Themed): void {
    apply(view);
    systemDark.addEventListener("change", () => apply(view));
    const print = (on: boolean) => () => {
        printing = on;
        apply(view);
    };
    addEventListener("beforeprint", print(true));
    addEventListener("afterprint", print(false));
}

export const chosen = (): Choice => choice;

/** Switches to the next choice. */
export function turn(view: Themed): Choice {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "system";
    remember();
    apply(view);
    return choice;
}
