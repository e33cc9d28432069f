import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  decodeTextFile,
  modalityOf,
  normalizeMediaType,
  readBase64,
  readMediaUrl,
  writeMediaUrl,
} from "../../../lib/protocols/canonical/media.ts";
import type { Media } from "../../../lib/protocols/canonical/types.ts";
import { workedMs } from "../../support/turns.ts";

Deno.test("readMediaUrl() reads data URLs in every spelling", () => {
  const cases: [string, string, string][] = [
    ["data:image/png;base64,AAAA", "image/png", "AAAA"],
    ["DATA:image/PNG;BASE64,AAAA", "image/png", "AAAA"],
    ["data:image/jpg;base64,AA==", "image/jpeg", "AA=="],
    ["data:image/png;charset=utf-8;base64,AA", "image/png", "AA=="],
    ["data:image/png;name=a.png; base64 ,AA==", "image/png", "AA=="],
    ["data:image/png;base64,AA AA\n", "image/png", "AAAA"],
    ["data:image/png;base64,-_-_", "image/png", "+/+/"],
    ["data:image/png;base64,%2B%2F8%3D", "image/png", "+/8="],
    ["data:,A%20brief%20note", "text/plain", btoa("A brief note")],
    ["data:text/plain,100%", "text/plain", btoa("100%")],
    ["data:text/plain,a,b", "text/plain", btoa("a,b")],
    ["data:image/svg+xml,%3Csvg%2F%3E", "image/svg+xml", btoa("<svg/>")],
    ["data:text/plain;charset=utf-8,é", "text/plain", btoa("\xc3\xa9")],
    ["data:image/gif,GIF%38%ff%00", "image/gif", btoa("GIF8\xff\0")],
    ["data:image/png;base64,", "image/png", ""],
  ];
  for (const [url, mediaType, base64] of cases) {
    assertEquals(readMediaUrl(url), { kind: "bytes", mediaType, base64 }, url);
  }
});

Deno.test("readMediaUrl() reads megabytes fast, whatever they are", () => {
  const size = 3_000_000;
  const urls = [
    `data:,${"%".repeat(size)}`,
    `data:,${"%41".repeat(size / 3)}`,
    `data:,${"é".repeat(size)}`,
    `data:image/png;base64,${"%41".repeat(size / 3)}`,
    `data:image/png;base64,${"A ".repeat(size / 2)}`,
    `data:image/png;base64,${"A-B_".repeat(size / 4)}`,
  ];
  for (const url of urls) {
    const start = workedMs();
    assertEquals(readMediaUrl(url).kind, "bytes");
    assert(workedMs() - start < 5_000, `${url.slice(0, 40)} took ${workedMs() - start} ms`);
  }
});

Deno.test("readMediaUrl() leaves other URLs unchanged", () => {
  for (const url of ["https://example.com/a.png", "gs://bucket/a", "file_123", "database:x", ""]) {
    assertEquals(readMediaUrl(url), { kind: "url", url });
  }
});

Deno.test("readMediaUrl() rejects invalid data URLs", () => {
  const endless = `data:image/png${";".repeat(2000)},AAAA`;
  for (
    const url of ["data:image/png;base64", "data:", "data:image/png;base64,A", "data:image/png;base64,A*==", endless]
  ) {
    assertThrows(() => readMediaUrl(url), SyntaxError, "Expected", url);
  }
});

Deno.test("writeMediaUrl() reverses readMediaUrl()", () => {
  const media: Media[] = [
    { kind: "bytes", mediaType: "image/png", base64: "AAAA" },
    { kind: "url", url: "https://example.com/a.png" },
  ];
  for (const value of media) assertEquals(readMediaUrl(writeMediaUrl(value)), value);
});

Deno.test("readBase64() returns canonical base64 or throws", () => {
  const good = [["", ""], ["AA", "AA=="], ["AAA", "AAA="], ["AAA=", "AAA="], ["A A\tA\nA", "AAAA"], ["_-8", "/+8="]];
  for (const [text = "", base64 = ""] of good) assertEquals(readBase64(text), base64);
  for (const text of ["A", "AAAAA", "A=", "AA=", "AA=A", "====", "A===", "=", "AA*A", "é"]) {
    assertThrows(() => readBase64(text), SyntaxError, "Expected base64", text);
  }
});

Deno.test("modalityOf() goes by type, then by name", () => {
  const bytes = (mediaType: string): Media => ({ kind: "bytes", mediaType, base64: "" });
  const cases: [Media, string | undefined, string][] = [
    [bytes("image/png"), "a.png", "image"],
    [bytes("audio/wav"), undefined, "audio"],
    [bytes("video/mp4"), undefined, "video"],
    [bytes("text/markdown"), "a.md", "text"],
    [bytes("application/pdf"), undefined, "file"],
    [{ kind: "url", url: "u" }, undefined, "image"],
    [{ kind: "url", url: "u" }, "a.pdf", "file"],
    [{ kind: "url", url: "u", mediaType: "application/pdf" }, undefined, "file"],
    [{ kind: "url", url: "u", mediaType: "image/webp" }, "a.webp", "image"],
    [{ kind: "url", url: "https://www.youtube.com/watch?v=a" }, undefined, "video"],
    [{ kind: "url", url: " HTTPS://m.YouTube.com.:443/shorts/a.png" }, undefined, "video"],
    [{ kind: "url", url: "https://youtu.be/a" }, "a.pdf", "video"],
    [{ kind: "url", url: "https://img.youtube.com/vi/a/0.jpg" }, undefined, "image"],
    [{ kind: "url", url: "https://notyoutube.com/a?u=https://youtu.be/a" }, undefined, "image"],
  ];
  for (const [media, name, modality] of cases) assertEquals(modalityOf(media, name), modality);
});

Deno.test("normalizeMediaType() uses one name for JPEG", () => {
  assertEquals(normalizeMediaType("image/JPG"), "image/jpeg");
  assertEquals(normalizeMediaType("Application/PDF"), "application/pdf");
});

Deno.test("decodeTextFile() returns the whole text, also a byte order mark, and nothing for other bytes", () => {
  assertEquals(decodeTextFile(btoa("\xef\xbb\xbfa")), "\ufeffa");
  assertEquals(decodeTextFile(btoa("\xff")), undefined);
});
