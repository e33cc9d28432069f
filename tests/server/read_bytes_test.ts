import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { ByteBuffer, readPieces } from "../../lib/server/read_bytes.ts";
import { simulateTime } from "../support/simulated_time.ts";

Deno.test("ByteBuffer joins pieces of any size", () => {
  const text = new TextEncoder().encode("0123456789".repeat(20));
  for (const firstBytes of [0, 1, 7, 64, 200, 1000]) {
    for (const sizes of [[200], [1, 199], [7, 1, 64], [64, 64, 64], [0, 200], [0, 7, 0, 193], [150, 1, 49], [3]]) {
      const buffer = new ByteBuffer(firstBytes);
      let at = 0;
      for (const size of sizes) {
        buffer.append(text.slice(at, at + size));
        at += size;
        assertEquals(buffer.bytes(), text.slice(0, at), `${firstBytes}: ${sizes}`);
      }
    }
  }
});

Deno.test("ByteBuffer adopts a first piece that fills it, and copies all others", () => {
  const whole = new Uint8Array([1, 2, 3, 4]);
  const buffer = new ByteBuffer(4);
  buffer.append(whole);
  assertStrictEquals(buffer.bytes().buffer, whole.buffer);
  // A view that ends later is not reused: the bytes after the piece belong to another reader.
  const part = new Uint8Array([1, 2, 3, 4, 9, 9]).subarray(0, 4);
  const grown = new ByteBuffer(4);
  grown.append(part);
  grown.append(new Uint8Array([5, 6]));
  assertEquals([...grown.bytes()], [1, 2, 3, 4, 5, 6]);
  assertEquals([...new Uint8Array(part.buffer)], [1, 2, 3, 4, 9, 9]);
  const small = new ByteBuffer(5);
  small.append(whole);
  assert(small.bytes().buffer !== whole.buffer);
});

Deno.test("ByteBuffer copies a first piece that leaves room", () => {
  const buffer = new ByteBuffer(0);
  buffer.append(new Uint8Array(0));
  assertEquals(buffer.bytes().length, 0);
  buffer.append(new Uint8Array([7]));
  buffer.append(new Uint8Array([8]));
  assert(buffer.bytes().every((byte, at) => byte === 7 + at));
  assertEquals(buffer.bytes().length, 2);
});

Deno.test("readPieces does not read on after the announced length", async () => {
  const pace = { gapMs: 60_000, graceMs: 60_000, minBytesPerSecond: 1, totalMs: 60_000 };
  for (const { length, reads } of [{ length: 6, reads: 2 }, { length: undefined, reads: 3 }]) {
    let [read, bytes, isCancelled] = [0, 0, false];
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (++read <= 2) controller.enqueue(new Uint8Array(3));
        else controller.close();
      },
      cancel: () => void (isCancelled = true),
    }, { highWaterMark: 0 });
    await readPieces(stream, { pace, length, take: (piece) => void (bytes += piece.length) });
    assertEquals({ read, bytes, isCancelled }, { read: reads, bytes: 6, isCancelled: length !== undefined });
  }
});

Deno.test("readPieces does not count the time for which a taker is busy", async () => {
  using time = simulateTime(0);
  const pace = { gapMs: 1_000, graceMs: 2_000, minBytesPerSecond: 1, totalMs: 60_000 };
  let [sender, ended] = [undefined as ReadableStreamDefaultController<Uint8Array> | undefined, ""];
  const taken = Promise.withResolvers<void>();
  const stream = new ReadableStream<Uint8Array>({ start: (controller) => void (sender = controller) });
  const takers = [() => taken.promise, () => {}, () => {}];
  readPieces(stream, { pace, take: () => takers.shift()?.() }).catch(({ kind }) => ended = kind);
  sender?.enqueue(new Uint8Array(1));
  await time.pass(5_000);
  taken.resolve();
  for (let pieces = 0; pieces < 2; pieces++) {
    await time.pass(900);
    assertEquals(ended, "");
    sender?.enqueue(new Uint8Array(0));
  }
  // The gap would last until 7,800, the grace time of the whole body lasts until 7,000.
  await time.pass(300);
  assertEquals(ended, "too_slow");
});
