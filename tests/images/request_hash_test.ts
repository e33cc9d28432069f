import { assertEquals, assertNotEquals } from "@std/assert";
import { hashRequest } from "../../lib/images/answer_once.ts";
import type { ImageRequest, InputImage } from "../../lib/images/types.ts";
import { parseJson } from "../../lib/json/mod.ts";
import { imageRequest } from "./request.ts";

function image(bytes: number[]): InputImage {
  return { bytes: Uint8Array.from(bytes), type: "png", orientation: 1, width: 16, height: 16 };
}

function request(change: Partial<ImageRequest> = {}): ImageRequest {
  const images = [image([1]), image([2])];
  return imageRequest({ kind: "edit", prompt: "a cat", requestedSize: "auto", images, ...change });
}

Deno.test("hashRequest() is independent of the order of members", async () => {
  const hash = await hashRequest(request());
  assertEquals(/^[0-9a-f]{64}$/.test(hash), true);
  const reversed = Object.fromEntries(Object.entries(request()).reverse()) as unknown as ImageRequest;
  assertEquals(await hashRequest(reversed), hash);
  assertEquals(await hashRequest(request({ user: undefined, mask: undefined, rest: { a: undefined } })), hash);
  assertEquals(
    await hashRequest(request({ rest: { a: { x: 1, y: [2, { p: 1, q: 2 }] }, b: 1 } })),
    await hashRequest(request({ rest: { b: 1, a: { y: [2, { q: 2, p: 1 }], x: 1 } } })),
  );
});

Deno.test("hashRequest() differs for different requests", async () => {
  const changes: Partial<ImageRequest>[] = [
    {},
    { kind: "generation" },
    { model: "sluice/other" },
    { prompt: "a cat " },
    { quality: "low" },
    { n: 2 },
    { requestedSize: "1024x1024" },
    { size: { width: 1024, height: 1040 } },
    { format: "jpeg" },
    { format: "jpeg", compression: 0 },
    { background: "opaque" },
    { partialImages: 1 },
    { user: "u" },
    { images: [image([2]), image([1])] },
    { images: [image([1, 2])] },
    { images: [image([1])], mask: image([2]) },
    { mask: image([2]) },
    { rest: { user: "u" } },
    { rest: { a: [1, 2] } },
    { rest: { a: [2, 1] } },
    { rest: { a: null } },
    { rest: parseJson('{"a":1.0}') as ImageRequest["rest"] },
    { rest: parseJson('{"__proto__":{"a":1}}') as ImageRequest["rest"] },
  ];
  const hashes = await Promise.all(changes.map((change) => hashRequest(request(change))));
  assertEquals(new Set(hashes).size, changes.length);
  assertNotEquals(hashes[0], hashes[1]);
});
