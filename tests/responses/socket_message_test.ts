import { assert, assertEquals } from "@std/assert";
import { readLongMessage, readMessage } from "../../lib/responses/socket_message.ts";
import { watchTurns } from "../support/turns.ts";

Deno.test("readLongMessage() reads as readMessage() does, in several turns of the event loop", async () => {
  const input = JSON.stringify('"\\'.repeat(1_000_000));
  const text = `{"type":"response.create","stream_id":"a","generate":false,"model":"m","input":${input}}`;
  using turns = watchTurns();
  const message = await readLongMessage(text);
  assert(turns.count() > 1);
  assertEquals([message.type, message.streamId, message.create?.generate], ["response.create", "a", false]);
  assert(message.create?.body === readMessage(text).create?.body);
});
