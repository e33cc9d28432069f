/** Imports the modules that the first requests do not need, with pauses for the requests that are running. */
import { delay } from "../abort.ts";
import { handlerImports, type Route } from "../server/router.ts";
import { upstreamImports } from "../upstreams/create_upstreams.ts";

/**
 * Time after the start at which the import of the remaining modules begins, in milliseconds. Once they are imported,
 * after about half a minute, an update of the files does not affect the running program.
 */
const LOAD_DELAY_MS = 1_000;

/**
 * Pause after each of these imports, as a multiple of its time, and at most, in milliseconds. An import blocks the event
 * loop, up to 40 ms on a slow machine. With these pauses, fewer than one in a hundred requests meets one.
 */
const LOAD_PAUSE_FACTOR = 100;
const MAX_LOAD_PAUSE_MS = 2_000;

/** Imports the modules that no request has needed so far, one after another, until it is stopped. */
export async function loadRemainingModules(routes: readonly Route[], signal: AbortSignal): Promise<void> {
  await delay(LOAD_DELAY_MS, signal);
  for (const load of [...handlerImports(routes), ...upstreamImports()]) {
    const startedAt = performance.now();
    await load();
    await delay(Math.min(LOAD_PAUSE_FACTOR * (performance.now() - startedAt), MAX_LOAD_PAUSE_MS), signal);
  }
}
