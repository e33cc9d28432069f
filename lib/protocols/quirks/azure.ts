/**
 * OpenAI's models at Azure. The key's header and the version in the address are the transport's; the first chunk, which
 * has content filter results and nothing else, is read everywhere.
 */
import type { Quirk } from "./quirk.ts";

/** Requests are OpenAI's own. */
export const azure: Quirk = {};
