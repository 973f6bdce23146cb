// SPDX-License-Identifier: PostgreSQL
/** The page of a profile, or of the difference between two. */
import { showDifference } from "./difference";
import { embedded } from "./model";
import { showProfile } from "./profile";

const flames = document.getElementById("flames");
const profile = embedded();
if (flames) {
    if (profile.format === "pgtally profile diff") showDifference(profile, flames);
    else showProfile(profile, flames);
}
