// SPDX-License-Identifier: PostgreSQL
/** The menu that shows and hides columns. */
import { element } from "../dom";
import type { Column } from "../model";

export function columnMenu(
    columns: readonly Column[],
    hidden: ReadonlySet<number>,
    set: (column: number, on: boolean) => void,
): HTMLElement {
    const choices = columns.slice(1).map(({ title, help }, i) => {
        const box = element("input", { type: "checkbox" });
        box.checked = !hidden.has(i + 1);
        box.addEventListener("change", () => set(i + 1, box.checked));
        return element("label", help ? { title: help } : {}, box, title);
    });
    const menu = element(
        "details",
        { class: "columns" },
        element("summary", { class: "plain" }, "Columns"),
        element("div", {}, ...choices),
    );
    const close = (): void => {
        menu.open = false;
    };
    menu.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        close();
        menu.querySelector("summary")?.focus();
    });
    addEventListener("click", (event) => {
        if (event.target instanceof Node && !menu.contains(event.target)) close();
    });
    return menu;
}
