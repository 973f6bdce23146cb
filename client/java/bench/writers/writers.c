/* SPDX-License-Identifier: PostgreSQL */
/*
 * writers.c
 *	  libtally as a writer for Java: an event by JNI (Native.java), or by a call of the foreign-memory API (Called.java).
 *	  For writers.py; docs/adr/0110 has what was found.
 */
#include <jni.h>

#include "tally.h"

static tally_segment segment;
static tally_slot slot;
static uint32_t at;

__attribute__((visibility("default"))) int
writers_open(const char *path)
{
	const tally_identity me = {.kind = "thread",.application = "writers"};
	tally_options options;
	int			rc;

	tally_options_init(&options);
	rc = tally_create(path, &options, false, &segment);
	if (rc == 0)
		rc = tally_claim(&segment, &me, &slot);
	if (rc != 0)
		return rc;
	tally_begin(&slot, tally_touch(&slot, tally_register(&segment, "idle::application", TALLY_ACCOUNT, "ticks")));
	at = tally_touch(&slot, tally_register(&segment, "call::execute::0", TALLY_TIMER, "ticks"));
	return at == TALLY_NONE ? -1 : 0;
}

__attribute__((visibility("default"))) void
writers_add(uint64_t value)
{
	tally_record(&slot, at, value);
}

JNIEXPORT jint JNICALL
Java_Native_open(JNIEnv *env, jclass self, jstring path)
{
	const char *text = (*env)->GetStringUTFChars(env, path, NULL);
	int			rc = text == NULL ? -1 : writers_open(text);

	if (text != NULL)
		(*env)->ReleaseStringUTFChars(env, path, text);
	return rc;
}

JNIEXPORT void JNICALL
Java_Native_add(JNIEnv *env, jclass self, jlong value)
{
	writers_add((uint64_t) value);
}
