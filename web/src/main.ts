// SPDX-License-Identifier: PostgreSQL
/** Reads the report in the page, draws it, and updates it if the page is live. */
import { element } from "./dom";
import { Page } from "./page";
import { embedded } from "./source";

/** Shows an error at the top of the page; null removes it. */
function showError(why: string | null): void {
    const before = document.querySelector(".complaint");
    if (before?.textContent === why) return;
    before?.remove();
    if (why !== null) document.body.prepend(element("p", { class: "complaint", role: "alert" }, why));
}

performance.mark("pgtally-begin");
try {
    const source = embedded();
    const page = new Page(source.first);
    source.follow(
        (report) => page.update(report),
        (why) => {
            showError(why);
            page.setLost(why !== null);
        },
        () => page.selecting,
    );
} catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    showError(`${why} The tables below are complete; the charts are missing.`);
}
performance.mark("pgtally-ready");
