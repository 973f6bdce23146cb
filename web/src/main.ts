// SPDX-License-Identifier: PostgreSQL
/** Reads the report that is in the page, draws it, and follows it if it is live. */
import { element } from "./dom";
import { Page } from "./page";
import { embedded } from "./source";

/** Says what is wrong on top of the page, whose tables are there in any case. */
function complain(why: string | null): void {
    const before = document.querySelector(".complaint");
    if (before?.textContent === why) return;
    before?.remove();
    if (why !== null) document.body.prepend(element("p", { class: "complaint", role: "alert" }, why));
}

performance.mark("pgtally-begin");
try {
    const source = embedded();
    const page = new Page(source.first);
    source.follow((report) => page.update(report), complain);
} catch (error) {
    complain(`${error instanceof Error ? error.message : String(error)} The tables below are complete; the charts are missing.`);
}
performance.mark("pgtally-ready");
