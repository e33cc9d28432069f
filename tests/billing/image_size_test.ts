import { assertEquals } from "@std/assert";
import { imageSize, imageSizeBase64 } from "../../lib/billing/image_size.ts";
import { seeded } from "../support/random.ts";

function bytesOf(...parts: (string | number[])[]): Uint8Array {
  return Uint8Array.from(
    parts.flatMap((part) => typeof part === "string" ? [...part].map((c) => c.charCodeAt(0)) : part),
  );
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

const PNG = bytesOf("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 4, 0], [0, 0, 3, 0], [8, 6, 0, 0, 0]);
const GIF = bytesOf("GIF89a", [0x40, 0x01, 0xc8, 0x00], [0, 0, 0]);
const FRAME = [0xff, 0xc2, 0, 17, 8, 0x02, 0x58, 0x03, 0x20, 3];
const JPEG = bytesOf([0xff, 0xd8], [0xff, 0xe0, 0, 6], "JFIF", [0xff, 0xff, 0xdb, 0, 3, 9], FRAME);
const DEEP_JPEG = bytesOf([0xff, 0xd8], ...Array(20).fill([0xff, 0xe2, 0xff, 0xff, ...Array(0xfffd).fill(7)]), FRAME);
const LOSSY = bytesOf("RIFF", [0, 0, 0, 0], "WEBPVP8 ", [0, 0, 0, 0], [0x30, 0, 0, 0x9d, 0x01, 0x2a], [
  0x20,
  0x43,
  0xf0,
  0,
]);
const LOSSLESS = bytesOf("RIFF", [0, 0, 0, 0], "WEBPVP8L", [0, 0, 0, 0], [0x2f, 0x8f, 0xc1, 0xf9, 0x10]);
const EXTENDED = bytesOf("RIFF", [0, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0], [0, 0, 0, 0], [0xff, 0x0f, 0, 0x57, 0x02, 0]);

Deno.test("imageSize() reads the header of each format", () => {
  const cases = [
    [PNG, { type: "png", width: 1024, height: 768 }],
    [GIF, { type: "gif", width: 320, height: 200 }],
    [JPEG, { type: "jpeg", width: 800, height: 600 }],
    [DEEP_JPEG, { type: "jpeg", width: 800, height: 600 }],
    [LOSSY, { type: "webp", width: 800, height: 240 }],
    [LOSSLESS, { type: "webp", width: 400, height: 1000 }],
    [EXTENDED, { type: "webp", width: 4096, height: 600 }],
  ] as const;
  for (const [bytes, size] of cases) {
    assertEquals(imageSize(bytes), size);
    assertEquals(imageSizeBase64(base64(bytes)), size);
  }
});

Deno.test("imageSize() reads real files", () => {
  const cases: [string, string, number, number][] = [
    ["png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", 1, 1],
    ["gif", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", 1, 1],
    ["webp", "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA", 1, 1],
    ["webp", "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", 1, 1],
  ];
  for (const [type, text, width, height] of cases) assertEquals(imageSizeBase64(text), { type, width, height }, text);
});

Deno.test("imageSize() is undefined for other files", () => {
  const cases: [string, Uint8Array][] = [
    ["nothing", new Uint8Array()],
    ["a text", bytesOf("GIF, PNG and JPEG are formats of images")],
    ["a PNG without IHDR", PNG.with(12, 0)],
    ["a PNG of no width", bytesOf("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 0, 0, 0, 0, 3, 0])],
    ["a PNG of 2^31 pixels", bytesOf("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [128, 0, 0, 0, 0, 0, 3, 0])],
    ["a JPEG that ends before its frame", bytesOf([0xff, 0xd8, 0xff, 0xd9], FRAME)],
    ["a JPEG with a segment too short", bytesOf([0xff, 0xd8, 0xff, 0xe0, 0, 1], FRAME)],
    ["a JPEG with a frame too short", bytesOf([0xff, 0xd8, 0xff, 0xc0, 0, 7, 8, 2, 2, 2, 2])],
    ["a JPEG with bytes between segments", bytesOf([0xff, 0xd8, 0x00], FRAME)],
    ["a JPEG of fill bytes", new Uint8Array(1_000_000).fill(0xff).with(1, 0xd8)],
    ["a JPEG whose height comes later", bytesOf([0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 0, 3, 0x20, 3])],
    ["a WebP frame that is no key frame", LOSSY.with(20, 0x31)],
    ["a WebP of an unknown kind", LOSSY.with(15, 0x39)],
  ];
  for (const [name, bytes] of cases) {
    assertEquals(imageSize(bytes), undefined, name);
    assertEquals(imageSizeBase64(base64(bytes)), undefined, name);
  }
});

Deno.test("imageSize() is undefined for a truncated header", () => {
  const sizes: [Uint8Array, number][] = [[PNG, 24], [GIF, 10], [JPEG, 25], [LOSSY, 30], [LOSSLESS, 25], [EXTENDED, 30]];
  for (const [bytes, needed] of sizes) {
    for (let length = 0; length <= bytes.length; length++) {
      const known = length >= needed;
      assertEquals(imageSize(bytes.slice(0, length)) !== undefined, known, `${bytes}: ${length}`);
      assertEquals(imageSizeBase64(base64(bytes.slice(0, length))) !== undefined, known, `${bytes}: ${length}`);
    }
  }
});

Deno.test("imageSize() never throws, and agrees with imageSizeBase64(), on damaged headers", () => {
  const { below } = seeded(99);
  const headers = [PNG, GIF, JPEG, LOSSY, LOSSLESS, EXTENDED];
  for (let i = 0; i < 5000; i++) {
    const bytes = (headers[i % headers.length] ?? PNG).slice();
    for (let change = 0; change < 3; change++) bytes[below(bytes.length)] = below(256);
    assertEquals(imageSizeBase64(base64(bytes)), imageSize(bytes), `${bytes}`);
  }
});

Deno.test("imageSizeBase64() confuses no characters", () => {
  const text = base64(PNG);
  for (const wrong of ["-", "_", " ", "=", "\n", "é", "\u0141"]) {
    assertEquals(imageSizeBase64(text.slice(0, 24) + wrong + text.slice(25)), undefined, wrong);
  }
});
