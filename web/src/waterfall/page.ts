// SPDX-License-Identifier: PostgreSQL
/** The page of a trace, above the sums as text. */
import { element } from "../dom";
import { current, followTheme, type Themed } from "../look/theme";
import { themeButton } from "../toolbar";
import { parse } from "../visible";
import type { Trace } from "./model";
import { traced } from "./traced";

const trace = parse(document.getElementById("report")?.textContent ?? "{}") as Trace;
document.documentElement.classList.add("scripted");
const views: Themed[] = [];
const themed: Themed = {
    get theme() {
        return views[0]?.theme ?? current();
    },
    setTheme: (theme) => views.forEach((view) => view.setTheme(theme)),
};
document.getElementById("traced")?.append(
    element("div", { class: "page-tools" }, themeButton(themed)),
    traced(trace, (view) => views.push(view)),
);
followTheme(themed);
