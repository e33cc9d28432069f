import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { watchReader } from "../../lib/request/reader_watch.ts";
import { soon } from "../soon.ts";

Deno.test("a reader is given up once, and not where it asked for more or its watch was stopped", async () => {
  const events: string[] = [];
  const watch = (name: string) => {
    const { promise, resolve } = Promise.withResolvers<GatewayError>();
    const reader = watchReader(0, (error) => {
      events.push(name);
      resolve(error);
    });
    return { reader, late: () => soon(`${name} given up`, promise) };
  };
  const first = watch("first");
  const asks = watch("asks");
  asks.reader.asks();
  const stopped = watch("stopped");
  stopped.reader.stop();
  stopped.reader.stop();
  const error = await first.late();
  assert(error instanceof GatewayError);
  assertEquals(error.kind, "too_slow");
  // All are looked at again at least once.
  await watch("second").late();
  assertEquals(events, ["first", "second"]);
  asks.reader.given();
  await asks.late();
  first.reader.stop();
  assertEquals(events, ["first", "second", "asks"]);
});
