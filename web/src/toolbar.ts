// SPDX-License-Identifier: PostgreSQL
/** The bar at the top of the page: the range in view, the brush, zone and theme. */
import { clock, date, elapsed, offset, offsetSeconds, seconds, type Zone } from "./clock";
import { button, element } from "./dom";
import { patternsAreOn, turnPatterns } from "./look/patterns";
import { chosen, turn, type Themed } from "./look/theme";
import { duration } from "./units";
import type { View } from "./view";

/** "2026-11-21 10:00:00 – 10:10:00", with a single date if both are the same. */
function span(from: number, to: number, zone: Zone): string {
    const write = to - from > 6 * 3600 ? clock : seconds;
    const [first, last] = [date(from, zone), date(to, zone)];
    const end = write(to, zone);
    return `${first} ${write(from, zone)} – ${first === last ? end : `${last} ${end}`}`;
}

function rangeText(view: View): HTMLElement {
    const first = element("b", {});
    const second = element("span", {});
    const box = element("p", { class: "range", "aria-live": "off" }, first, second);
    const write = (): void => {
        const { from, to } = view.range;
        if (view.zone === "elapsed") {
            first.textContent = `${elapsed(from)} – ${elapsed(to)}`;
            second.textContent = "time since the start of each side";
            return;
        }
        const other: Zone = view.zone === "UTC" ? "local" : "UTC";
        const name = (zone: Zone): string => (zone === "UTC" ? "UTC" : offset(from));
        first.textContent = `${span(from, to, view.zone)} ${name(view.zone)}`;
        const same = offsetSeconds(from) === 0;
        second.textContent = `${same ? "" : `${span(from, to, other)} ${name(other)}, `}${duration(to - from)}`;
    };
    view.on("range", write);
    view.on("zone", write);
    write();
    return box;
}

/** A button whose label has words that a narrow window does not show. */
function labelled(before: string, label: () => string, title: string, act: () => void): HTMLButtonElement {
    const made = button("", title, () => {
        act();
        write();
    });
    const write = (): void => made.replaceChildren(element("span", { class: "long" }, before), label());
    write();
    return made;
}

function allButton(view: View): HTMLElement {
    const made = labelled("Show ", () => "all", "Show the whole recording (or double-click a chart)", () => view.reset());
    const write = (): void => {
        made.disabled = !view.zoomed;
    };
    view.on("range", write);
    write();
    return made;
}

function zoneButton(view: View): HTMLElement {
    const made = labelled(
        "Times: ",
        () => (view.zone === "UTC" ? "UTC" : "local"),
        "Show times in UTC or in this browser's time zone",
        () => view.setZone(view.zone === "UTC" ? "local" : "UTC"),
    );
    made.classList.add("turns");
    return made;
}

export function themeButton(view: Themed): HTMLElement {
    const made = labelled(
        "Theme: ",
        () => ({ system: "auto", light: "light", dark: "dark" })[chosen()],
        "Colours: system setting, light, dark",
        () => turn(view),
    );
    made.classList.add("turns");
    return made;
}

/** Redraws everything, as a change of theme does. */
function patternsButton(view: View): HTMLElement {
    const toggle = button("Patterns", "Mark classes of waits with patterns, too", () => {
        turnPatterns();
        write();
        view.setTheme(view.theme);
    });
    const write = (): void => toggle.setAttribute("aria-pressed", String(patternsAreOn()));
    write();
    return toggle;
}

/** A page without charts over time has no range. */
export function toolbar(
    view: View,
    overview: HTMLElement | null,
    overTime: boolean,
    live: HTMLElement | null,
): HTMLElement {
    return element(
        "div",
        { class: "toolbar", role: "region", "aria-label": "View" },
        overTime ? rangeText(view) : null,
        overview ?? element("span", {}),
        element(
            "div",
            { class: "tools" },
            live,
            overTime ? allButton(view) : null,
            view.zone === "elapsed" ? null : zoneButton(view),
            overTime && view.zone !== "elapsed" ? patternsButton(view) : null,
            themeButton(view),
        ),
    );
}
