import { assert, assertEquals, assertLess, assertRejects, assertStringIncludes } from "@std/assert";
import { clearImmediate, setImmediate } from "node:timers";
import { GatewayError } from "../../lib/errors.ts";
import { type MultipartRules, readMultipart } from "../../lib/images/multipart.ts";
import { readUpload } from "../../lib/images/read_edit.ts";
import { createAdmissionQueue } from "../../lib/admission_queue.ts";
import { seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";
import { watchTurns, workedMs } from "../support/turns.ts";
import { png } from "./image_files.ts";

const RULES: MultipartRules = {
  totalBytes: 100_000,
  fileBytes: 50_000,
  textBytes: 2_000,
  parts: 32,
  pace: { gapMs: 60_000, graceMs: 60_000, minBytesPerSecond: 1000, totalMs: 60_000 },
  gate: createAdmissionQueue({ concurrent: 4, waiting: 4, waitMs: 60_000 }),
};

/** Text in which each character is one byte. */
function latin(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function upload(body: BodyInit, headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/v1/images/edits", {
    method: "POST",
    body,
    headers: { "content-type": "multipart/form-data; boundary=b", ...headers },
  });
}

/** A body that delivers these pieces on demand. */
function inPieces(pieces: Iterable<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(pieces);
}

async function entriesOf(form: FormData): Promise<unknown[]> {
  return await Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === "string" ? [name, value] : [name, value.name, value.type, await value.bytes()]
    ),
  );
}

async function read(body: BodyInit, rules: Partial<MultipartRules> = {}): Promise<unknown[]> {
  return await entriesOf(await readMultipart(upload(body), { ...RULES, ...rules }));
}

async function refusal(request: Request, rules: Partial<MultipartRules> = {}): Promise<GatewayError> {
  return await assertRejects(() => readMultipart(request, { ...RULES, ...rules }), GatewayError);
}

/** A part without its boundary. */
function part(disposition: string, content = "x", more = ""): string {
  return `Content-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}`;
}

function form(...parts: string[]): string {
  return parts.map((each) => `--b\r\n${each}\r\n`).join("") + "--b--\r\n";
}

Deno.test("readMultipart() reads forms of curl and the SDKs", async () => {
  const curl = latin(form(
    part('name="prompt"', "a cat"),
    part('name="image"; filename="photo.png"', "\x89PNG\r\n\x1a\n", "Content-Type: image/png\r\n"),
    part('name="image"; filename="b \\"2\\".jpg"', "\xff\xd8", "Content-Type: image/jpeg\r\n"),
  ));
  assertEquals(await read(curl), [
    ["prompt", "a cat"],
    ["image", "photo.png", "image/png", latin("\x89PNG\r\n\x1a\n")],
    ["image", 'b "2".jpg', "image/jpeg", latin("\xff\xd8")],
  ]);

  const sent = new FormData();
  sent.append("model", "sluice/canvas");
  sent.append("image[]", new File([latin("\0\r\n--")], "a.png", { type: "image/png" }));
  sent.append("image[]", new File([latin("\r\n\r\n")], 'näive "q".png'));
  sent.append("n", "2");
  const request = new Request("http://localhost/", { method: "POST", body: sent });
  assertEquals(await entriesOf(await readMultipart(request, RULES)), [
    ["model", "sluice/canvas"],
    ["image[]", "a.png", "image/png", latin("\0\r\n--")],
    ["image[]", 'näive "q".png', "application/octet-stream", latin("\r\n\r\n")],
    ["n", "2"],
  ]);
});

Deno.test("readMultipart() reads the same form split anywhere", async () => {
  const body = latin(
    "preamble\r\n--b \t\r\n" + part('name="a"', "\r\n--\r\n-\r\r\n-") + "\r\n--b\r\n" +
      part('name="f"; filename="f"', "\r\n--B\r\n\r\n--", "X: y\r\n") + "\r\n--b\r\n" + part('name="e"', "") +
      "\r\n--b--\r\nepilogue --b",
  );
  const whole = await read(body);
  assertEquals(whole, [
    ["a", "\r\n--\r\n-\r\r\n-"],
    ["f", "f", "application/octet-stream", latin("\r\n--B\r\n\r\n--")],
    ["e", ""],
  ]);
  for (let cut = 0; cut <= body.length; cut++) {
    assertEquals(await read(inPieces([body.slice(0, cut), body.slice(cut)])), whole, `cut at ${cut}`);
    for (const end of [cut + 1, cut + 2, cut + 5]) {
      const pieces = [body.slice(0, cut), body.slice(cut, end), body.slice(end)];
      assertEquals(await read(inPieces(pieces)), whole, `cut at ${cut} and ${end}`);
    }
  }
  assertEquals(await read(inPieces(Array.from(body, (byte) => Uint8Array.of(byte)))), whole);
});

Deno.test("readMultipart() accepts every boundary of RFC 2046, quoted or not", async () => {
  const boundaries: [string, string][] = [
    ["----WebKitFormBoundary7MA4YWxkTrZu0gW", "----WebKitFormBoundary7MA4YWxkTrZu0gW"],
    ["x".repeat(70), "x".repeat(70)],
    ['"a b"', "a b"],
    ["'()+_,-./:?", "'()+_,-./:?"],
    ['"=_Part"', "=_Part"],
    ["--", "--"],
    ["-", "-"],
    ["b; charset=utf-8", "b"],
  ];
  for (const [written, boundary] of boundaries) {
    const body = `--${boundary}\r\n${part('name="a"', `x--${boundary}`)}\r\n--${boundary}--`;
    const request = upload(body, { "content-type": `Multipart/Form-Data;boundary=${written}` });
    assertEquals(
      await entriesOf(await readMultipart(request, RULES)),
      [["a", `x--${boundary}`]],
      written,
    );
  }
});

Deno.test("readMultipart() rejects other media types and invalid boundaries with 400", async () => {
  const cases: [type: string, words: string][] = [
    ["application/json", "multipart/form-data"],
    ["application/x-www-form-urlencoded", "multipart/form-data"],
    ["multipart/mixed; boundary=b", "multipart/form-data"],
    ["multipart/form-dataX; boundary=b", "multipart/form-data"],
    ["multipart/form-data", "has no boundary"],
    ["multipart/form-data; boundary=", "malformed"],
    ['multipart/form-data; boundary=""', "1 to 70"],
    [`multipart/form-data; boundary=${"x".repeat(71)}`, "1 to 70"],
    ['multipart/form-data; boundary="b "', "1 to 70"],
    ['multipart/form-data; boundary="b', "malformed"],
    ["multipart/form-data; boundary=b; boundary=c", "comes twice"],
    ["multipart/form-data; boundary=b[c]", "1 to 70"],
    [`multipart/form-data; boundary="${"\\".repeat(5000)}`, "malformed"],
  ];
  for (const [type, words] of cases) {
    const error = await refusal(upload(form(part('name="a"')), { "content-type": type }));
    assertEquals(error.status, 400, type);
    assertStringIncludes(error.message, words);
  }
  const none = new Request("http://localhost/", { method: "POST", body: latin("x") });
  assertEquals((await refusal(none)).status, 400);
  assertEquals((await refusal(upload(form(), { "content-encoding": "gzip" }))).status, 415);
});

Deno.test("readMultipart() rejects a malformed form with 400 and the reason", async () => {
  const head = (lines: string) => `--b\r\n${lines}\r\n\r\nx\r\n--b--`;
  const cases: [body: string, words: string][] = [
    ["", "has no boundary"],
    ["no boundary here", "has no boundary"],
    ["--c\r\n" + part('name="a"') + "\r\n--c--", "has no boundary"],
    ["x".repeat(5000) + "\r\n" + form(part('name="a"')), "does not begin with its boundary"],
    [`--b\r\n${part('name="a"')}`, "before its last boundary"],
    [`--b\r\n${part('name="a"')}\r\n--b`, "before its last boundary"],
    [`--b\r\n${part('name="a"')}\r\n--b-`, "before its last boundary"],
    [`--b\r\n${part('name="a"')}\r\n--b\r\n`, "before its last boundary"],
    ["--b\r\nContent-Disposition: form-data", "before its last boundary"],
    [form(part('name="a"')).replaceAll("\r\n", "\n"), "CRLF or --"],
    [`--b\r\n${part('name="a"')}\r\n--bb\r\n`, "CRLF or --"],
    [`--b${" ".repeat(100)}\r\n`, "CRLF or --"],
    ["--b\r\n\r\nx\r\n--b--", "no Content-Disposition"],
    [head("Content-Type: text/plain"), "no Content-Disposition"],
    [head('Content-Disposition: form-data; name="a"\nX: y'), "CRLF"],
    [head('Content-Disposition: form-data; name="a"\rX: y'), "CRLF"],
    [head('Content-Disposition: form-data; name="a\0"'), "control character"],
    [head('Content-Disposition: form-data; name="a"\r\n folded'), "malformed header line"],
    [head('Content-Disposition: form-data; name="a"\r\nno colon'), "malformed header line"],
    [head('Content-Disposition : form-data; name="a"'), "malformed header line"],
    [head('Content-Disposition: attachment; name="a"'), '"form-data"'],
    [head("Content-Disposition: form-data"), "name of a field"],
    [head('Content-Disposition: form-data; name=""'), "name of a field"],
    [head('Content-Disposition: form-data; name="a b"'), "name of a field"],
    [head('Content-Disposition: form-data; name="a%0D%0Ab"'), "name of a field"],
    [head('Content-Disposition: form-data; name="é"'), "name of a field"],
    [head(`Content-Disposition: form-data; name="${"a".repeat(65)}"`), "name of a field"],
    [head('Content-Disposition: form-data; name="a'), "malformed"],
    [head('Content-Disposition: form-data; name="a"x'), "malformed"],
    [head('Content-Disposition: form-data; name="a"; name="b"'), "comes twice"],
    [head(`Content-Disposition: form-data; name="${"\\".repeat(3999)}`), "malformed"],
    [head(`Content-Disposition: form-data; name="a"; x="${'\\"'.repeat(1900)}`), "malformed"],
    [head('Content-Disposition: form-data; name="a"\r\ncontent-disposition: form-data; name="a"'), "twice"],
    [form(part('name="a"', "x", "Content-Type: text/plain\r\nContent-Type: text/html\r\n")), "twice"],
    [form(part('name="a"', "eA==", "Content-Transfer-Encoding: base64\r\n")), "Content-Transfer-Encoding"],
    [form(part('name="a"', "x", "Content-Type: multipart/mixed; boundary=c\r\n")), "form of its own"],
    [form(part('name="a"', "x", "Content-Type: text/plain; charset=latin1\r\n")), "not UTF-8"],
    [form(part('name="a"', "x", "X: y\r\n".repeat(16))), "more than 16 header lines"],
    [form(part('name="a"', "x", `X: ${"y".repeat(4096)}\r\n`)), "more than 4096 bytes"],
    [form(part('name="a"', "a\xffb")), 'field "a": byte 1 is not UTF-8'],
    [form(part('name="a"', "\xed\xa0\x80")), 'field "a": byte 0 is not UTF-8'],
    [form(...Array.from({ length: 33 }, () => part('name="a"'))), "more than 32 parts"],
    [form(part('name="a"')) + "x".repeat(4096), "follows its last boundary"],
  ];
  for (const [body, words] of cases) {
    const error = await refusal(upload(latin(body)));
    assertEquals(error.kind, "invalid", body.slice(0, 60));
    assertStringIncludes(error.message, words);
    assertLess(error.message.length, 200);
  }
  const noBody = new Request("http://localhost/", {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=b" },
  });
  assertStringIncludes((await refusal(noBody)).message, "has no boundary");
});

Deno.test("readMultipart() accepts unusual but valid forms", async () => {
  const cases: [body: string, entries: unknown[]][] = [
    ["--b--", []],
    ["\r\n--b--\r\n", []],
    ["--b\r\n" + part('name="a"') + "\r\n--b--", [["a", "x"]]],
    ["--b\r\nContent-Disposition: form-data; name=a\r\n\r\n--b--", [["a", ""]]],
    ["--b\r\ncontent-disposition:FORM-DATA ; Name = a\r\n\r\nx\r\n--b--".replace(" = ", "="), [["a", "x"]]],
    [form(part('name="a";')), [["a", "x"]]],
    [form(part('name="a"', "--b\r\n--").replace("--b\r\n--", "-b\r\n--")), [["a", "-b\r\n--"]]],
    [form(part('name="a"', "\xef\xbb\xbfx")), [["a", "\ufeffx"]]],
    [form(part('name="a"', "\xc3\xa9", "Content-Type: text/plain; charset=UTF-8\r\n")), [["a", "é"]]],
    [form(part('name="a"', "x", "content-transfer-encoding: 8BIT\r\n")), [["a", "x"]]],
    [form(part('name="a"; filename=""', "")), [["a", "", "application/octet-stream", latin("")]]],
    [form(part('name="a"; filename="e.png"', "", "Content-Type: image/png\r\n")), [[
      "a",
      "e.png",
      "image/png",
      latin(""),
    ]]],
    [form(part("name=\"a\"; filename*=UTF-8''n%C3%A4.png")), [["a", "nä.png", "application/octet-stream", latin("x")]]],
    [form(part("name=\"a\"; filename*=UTF-8''%ff")), [["a", "", "application/octet-stream", latin("x")]]],
    ...[
      ["/etc/passwd", "passwd"],
      ["..\\\\..\\\\x.png", "x.png"],
      ["C:\\dir\\x.png", "x.png"],
      ["a%22b%0D%0Ac%41", 'a"bc%41'],
      ["..", ".."],
      ["semi;colon=1", "semi;colon=1"],
      ["\xff", "\ufffd"],
    ].map(([filename, label]): [string, unknown[]] => [
      form(part(`name="a"; filename="${filename}"`)),
      [["a", label, "application/octet-stream", latin("x")]],
    ]),
  ];
  for (const [body, entries] of cases) assertEquals(await read(latin(body)), entries, body);
});

Deno.test("readMultipart() limits bytes while they arrive", async () => {
  const file = (bytes: number) => part('name="f"; filename="f"', "y".repeat(bytes));
  const exact = form(file(49_000), file(50_000), part('name="a"', "z".repeat(RULES.textBytes))).length;
  const cases: [body: string, totalBytes: number, ok: boolean][] = [
    [form(file(50_000)), 100_000, true],
    [form(file(50_001)), 100_000, false],
    [form(part('name="a"', "z".repeat(2000))), 100_000, true],
    [form(part('name="a"', "z".repeat(2001))), 100_000, false],
    [form(file(49_000), file(50_000), part('name="a"', "z".repeat(2000))), exact, true],
    [form(file(49_000), file(50_000), part('name="a"', "z".repeat(2000))), exact - 1, false],
  ];
  for (const [body, totalBytes, ok] of cases) {
    const pieces = [...body.match(/[^]{1,1000}/g) ?? []].map(latin);
    if (ok) await read(inPieces(pieces), { totalBytes });
    else assertEquals((await refusal(upload(inPieces(pieces)), { totalBytes })).kind, "too_large");
  }
  const unnamedFile = upload(latin(form(part('name="a"', "z".repeat(2001)))));
  assertStringIncludes((await refusal(unnamedFile)).message, "2000 bytes; a file needs a filename");

  let given = 0;
  function* endless(): Generator<Uint8Array<ArrayBuffer>> {
    yield latin("--b\r\n" + part('name="f"; filename="f"', ""));
    for (; given < 10_000; given++) yield new Uint8Array(1000);
  }
  assertEquals((await refusal(upload(inPieces(endless())))).param, "f");
  assertLess(given, 60);
});

Deno.test("readMultipart() rejects a declared size without reading, and calls take() before it stores bytes", async () => {
  let requests = 0;
  const body = new ReadableStream<Uint8Array>({ pull: () => void requests++ }, { highWaterMark: 0 });
  assertEquals((await refusal(upload(body, { "content-length": "100001" }))).kind, "too_large");
  assertEquals(requests, 0);

  const text = form(part('name="a"', "hello"));
  let taken = 0;
  await read(latin(text), { take: (bytes) => void (taken += bytes) });
  assertEquals(taken, text.length);
  const full = new GatewayError("limited", "Cannot accept another request body now");
  const error = await refusal(upload(text), {
    take: () => {
      throw full;
    },
  });
  assertEquals(error, full);
});

Deno.test("readMultipart() accepts only the given fields", async () => {
  const names = new Set(["image", "image[]"]);
  assertEquals((await read(form(part('name="image[]"')), { names })).length, 1);
  const error = await refusal(upload(form(part('name="constructor"'))), { names });
  assertEquals([error.kind, error.param], ["invalid", "constructor"]);
  assertEquals((await read(form(part('name="__proto__"'))))[0], ["__proto__", "x"]);
});

Deno.test("readMultipart() stops at the first error and abandons the body", async () => {
  for (const first of ["--b\r\nbad\r\n\r\n", "x".repeat(5000)]) {
    const { promise: cancelled, resolve } = Promise.withResolvers<unknown>();
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(latin(first)),
      cancel: resolve,
    });
    assertEquals((await refusal(upload(body))).kind, "invalid");
    await cancelled;
  }
  const broken = new ReadableStream({ pull: () => Promise.reject(new TypeError("connection reset")) });
  assertStringIncludes((await refusal(upload(broken))).message, "connection was closed early");
});

Deno.test("readMultipart() agrees with Request.formData() on well-formed bodies", async () => {
  const { below, pick } = seeded(12_345);
  const crumbs = [
    "\r",
    "\n",
    "\r\n",
    "-",
    "--",
    "\r\n--",
    "\r\n--b",
    "\r\n--bound",
    "bound",
    "x",
    "\0",
    "\xff",
    "\r\n\r\n",
  ];
  const texts = ["\r", "\n", "\r\n--", "-", "é", "\u{1f408}", "a", "\0", '"', " "];
  const encoder = new TextEncoder();

  for (let run = 0; run < rounds(4_000); run++) {
    const boundary = pick(["boundary", "----x", "b".repeat(70), "a-b_c'", "-"]);
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for (let count = below(5); count > 0; count--) {
      const isFile = below(2) === 0;
      const source = isFile ? crumbs : texts;
      const content = Array.from({ length: below(12) }, () => pick(source)).join("");
      if (content.includes(`\r\n--${boundary}`) || `\r\n${content}\r\n`.includes(`\r\n--${boundary}`)) continue;
      const name = pick(["image", "image[]", "prompt", "a-b_c", "n"]);
      const filename = pick(["a.png", "näive.jpg", "with space", "x.y.z", ""]);
      const type = pick(["", "Content-Type: image/png\r\n", "Content-Type: Text/Plain; charset=utf-8\r\n"]);
      chunks.push(encoder.encode(
        `--${boundary}\r\n` +
          part(`name="${name}"${isFile ? `; filename="${filename}"` : ""}`, "", isFile ? type : ""),
      ));
      chunks.push(isFile ? latin(content) : encoder.encode(content), latin("\r\n"));
    }
    chunks.push(latin(`--${boundary}--\r\n`));
    const body = new Uint8Array(await new Blob(chunks).arrayBuffer());
    const cut = below(body.length + 1);
    const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
    const expected = await entriesOf(await upload(body, headers).formData());
    const pieces = inPieces([body.slice(0, cut), body.slice(cut)]);
    const form = await entriesOf(await readMultipart(upload(pieces, headers), RULES));
    assertEquals(form, expected, JSON.stringify(new TextDecoder().decode(body)));
  }
});

Deno.test("readMultipart() is linear, yields to the event loop and limits parts, whatever the bytes", async () => {
  const bytes = 2 * 1024 * 1024;
  const boundary = "x".repeat(70);
  const head = `--${boundary}\r\n${part('name="f"; filename="f"', "")}`;
  const rules = { totalBytes: bytes * 2, fileBytes: bytes };
  for (const crumb of ["\r\n--", "\r", "\n", "x", `\r\n--${"x".repeat(69)}y`, "-"]) {
    const content = new TextEncoder().encode(crumb.repeat(Math.floor(bytes / crumb.length)));
    const body = new Blob([latin(head), content, latin(`\r\n--${boundary}--`)]);
    // A single piece that is already in memory: only the parser itself can yield to other work.
    const request = upload(inPieces([await body.bytes()]), {
      "content-type": `multipart/form-data; boundary=${boundary}`,
    });
    let turns = 0;
    // Not an interval: a fast machine parses all of it within a millisecond.
    let next = setImmediate(function count() {
      turns++;
      next = setImmediate(count);
    });
    const start = workedMs();
    const file = (await readMultipart(request, { ...RULES, ...rules })).get("f");
    const tookMs = workedMs() - start;
    clearImmediate(next);
    assert(file instanceof File);
    assertEquals(file.size, content.length);
    assertLess(tookMs, 20_000, JSON.stringify(crumb.slice(0, 8)));
    assert(turns > 0, "nobody else had a turn");
  }
  const many = form(...Array.from({ length: 10_000 }, () => part('name="f"; filename="f"', "")));
  const start = workedMs();
  assertStringIncludes((await refusal(upload(many), { totalBytes: 1e7 })).message, "more than 32 parts");
  assertLess(workedMs() - start, 5_000);
});

Deno.test("readMultipart() reads a few uploads at a time, and queues a limited number", async () => {
  const gate = createAdmissionQueue({ concurrent: 2, waiting: 2, waitMs: 60_000 });
  const rules = { ...RULES, gate };
  const uploads = Array.from({ length: 5 }, () => {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    let pulled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (given) => void (controller = given),
      pull: () => void (pulled = true),
    }, { highWaterMark: 0 });
    const aborter = new AbortController();
    const request = new Request(upload(body), { signal: aborter.signal });
    return {
      aborter,
      pulled: () => pulled,
      reading: readMultipart(request, rules),
      finish() {
        controller?.enqueue(latin(form(part('name="a"'))));
        controller?.close();
      },
    };
  });
  const [one, two, three, four, five] = uploads;
  assert(one && two && three && four && five);
  const error = await assertRejects(() => five.reading, GatewayError);
  assertEquals([error.kind, error.retryAfterMs], ["limited", 2000]);
  assertEquals(uploads.map((each) => each.pulled()), [true, true, false, false, false]);
  three.aborter.abort(new DOMException("gone", "AbortError"));
  await assertRejects(() => three.reading, DOMException, "gone");
  two.finish();
  assertEquals((await two.reading).get("a"), "x");
  four.finish();
  assertEquals((await four.reading).get("a"), "x");
  one.aborter.abort();
  one.finish();
  await one.reading.catch(() => {});
  // All upload slots are free again.
  for (let run = 0; run < 5; run++) await readMultipart(upload(form()), rules);
});

Deno.test("readMultipart() rejects an upload that waited too long in the queue", async () => {
  const gate = createAdmissionQueue({ concurrent: 1, waiting: 2, waitMs: 20 });
  const { signal } = new AbortController();
  const leave = await gate.enter(signal);
  assertEquals((await assertRejects(() => gate.enter(signal), GatewayError)).kind, "limited");
  const next = gate.enter(signal);
  leave();
  leave();
  const waiting = gate.enter(signal);
  (await next)();
  (await waiting)();
  await assertRejects(() => gate.enter(AbortSignal.abort(new DOMException("gone", "AbortError"))), DOMException);
});

Deno.test("readUpload() reads a large file in turns of the event loop", async () => {
  using turns = watchTurns();
  const file = new File([png(8, 9), new Uint8Array(40_000_000).fill(7)], "a.png");
  const { bytes, height } = await readUpload(file, "image");
  assertEquals([bytes.length, bytes.at(-1), height], [file.size, 7, 9]);
  assertLess(5, turns.count());
});
