import { assert, assertEquals } from "@std/assert";
import { orientationOf } from "../../lib/images/orientation.ts";
import { chunk, exif, exifSegment, join, jpegHead, png, pngHead, segment } from "./image_files.ts";
import { workedMs } from "../support/turns.ts";

/** A WebP of 4x3 pixels with chunks after its head. */
function webp(...chunks: [name: string, data: Uint8Array<ArrayBuffer>][]): Uint8Array<ArrayBuffer> {
  const parts = chunks.flatMap(([name, data]) => [
    join(name, new Uint8Array(new Uint32Array([data.length]).buffer), data, new Uint8Array(data.length % 2)),
  ]);
  return join("RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\x03\0\0\x02\0\0", ...parts);
}

const JFIF = segment(0xe0, join("JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));

Deno.test("orientationOf() reads every orientation of JPEG, PNG and WebP in both byte orders", () => {
  for (let orientation = 1; orientation <= 8; orientation++) {
    for (const order of ["little", "big"] as const) {
      const data = exif(orientation, order);
      assertEquals(orientationOf(jpegHead(4, 3, exifSegment(data))), orientation);
      assertEquals(orientationOf(jpegHead(4, 3, JFIF, join("\xff"), exifSegment(data))), orientation);
      assertEquals(orientationOf(png(4, 3, chunk("gAMA", new Uint8Array(4)), chunk("eXIf", data))), orientation);
      assertEquals(orientationOf(webp(["VP8 ", join("odd")], ["EXIF", data])), orientation);
      assertEquals(orientationOf(webp(["EXIF", join("Exif\0\0", data)])), orientation);
    }
  }
});

Deno.test("orientationOf() is 1 for missing or invalid data", () => {
  const xmp = segment(0xe1, join("http://ns.adobe.com/xap/1.0/\0<x/>"));
  for (
    const bytes of [
      new Uint8Array(),
      join("not an image"),
      jpegHead(4, 3),
      jpegHead(4, 3, JFIF, xmp),
      jpegHead(4, 3, exifSegment(exif(0))),
      jpegHead(4, 3, exifSegment(exif(9))),
      jpegHead(4, 3, exifSegment(join("XX", exif(6).subarray(2)))),
      join(jpegHead(4, 3), exifSegment(exif(6))),
      png(4, 3),
      join(png(4, 3), chunk("eXIf", exif(6))),
      pngHead(4, 3),
    ]
  ) assertEquals(orientationOf(bytes), 1);
});

Deno.test("orientationOf() never throws for truncated or changed files", () => {
  const files = [
    jpegHead(4, 3, JFIF, exifSegment(exif(6))),
    png(4, 3, chunk("eXIf", exif(6, "big"))),
    webp(["VP8 ", join("odd")], ["EXIF", exif(6)]),
  ];
  for (const file of files) {
    for (let end = 0; end < file.length; end++) orientationOf(file.slice(0, end));
    for (let at = 0; at < file.length; at++) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        const orientation = orientationOf(file.with(at, value));
        assert(orientation >= 1 && orientation <= 8);
      }
    }
  }
});

Deno.test("orientationOf() gives up on endless segments", () => {
  const bytes = new Uint8Array(64 * 1024 * 1024).fill(0xff);
  bytes.set([0xff, 0xd8]);
  const start = workedMs();
  assertEquals(orientationOf(bytes), 1);
  assert(workedMs() - start < 2_000);
});
