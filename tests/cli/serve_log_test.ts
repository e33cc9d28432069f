import { assertEquals } from "@std/assert";
import { logUncaughtErrors } from "../../lib/cli/serve_log.ts";
import type { LogEntry } from "../../lib/log_events.ts";

/** The first entry that the guard logs after `act`. */
async function caught(act: () => void): Promise<LogEntry> {
  const { promise, resolve } = Promise.withResolvers<LogEntry>();
  const forget = logUncaughtErrors(resolve);
  try {
    act();
    return await promise;
  } finally {
    forget();
  }
}

Deno.test("an unhandled rejection is logged in one line, without its message", async () => {
  const { level, event, cause, ...rest } = await caught(() => void Promise.reject(new RangeError("a secret")));
  assertEquals([level, event, cause], ["error", "unhandled_rejection", "RangeError"]);
  assertEquals(JSON.stringify(rest).includes("a secret"), false);
});

Deno.test("an uncaught error is logged in one line", async () => {
  const entry = await caught(() =>
    void setTimeout(() => {
      throw new TypeError("a secret");
    })
  );
  assertEquals([entry.event, entry.cause], ["uncaught_error", "TypeError"]);
});
