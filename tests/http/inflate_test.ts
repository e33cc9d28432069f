import { assert, assertEquals, assertLess, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { Alarms } from "../../lib/http/alarms.ts";
import { readJsonBody } from "../../lib/http/body.ts";
import { BodyBudget } from "../../lib/http/body_limits.ts";
import { type Coding, inflate, readCoding } from "../../lib/http/inflate.ts";
import { seeded } from "../random.ts";
import { exchange, head, post, startServer, TEST_LIMITS } from "./serve.ts";

const CODINGS: readonly Coding[] = ["gzip", "deflate"];

async function compress(text: string | Uint8Array<ArrayBuffer>, coding: Coding): Promise<Uint8Array<ArrayBuffer>> {
  return await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream(coding))).bytes();
}

/** Bytes as a string of one character each, as requests are written here. */
function binary(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

/** Bytes that no coding makes smaller, the same each time. */
function noise(length: number): Uint8Array<ArrayBuffer> {
  const { below } = seeded(1);
  return Uint8Array.from({ length }, () => below(256));
}

Deno.test("readCoding() knows the codings that are read, and says which", () => {
  const cases: [header: string | undefined, coding: Coding | undefined][] = [
    [undefined, undefined],
    ["", undefined],
    ["identity", undefined],
    ["gzip", "gzip"],
    [" GZip ", "gzip"],
    ["x-gzip", "gzip"],
    ["deflate", "deflate"],
    ["identity, deflate", "deflate"],
  ];
  for (const [header, coding] of cases) {
    assertEquals(readCoding(new Headers(header === undefined ? {} : { "content-encoding": header })), coding, header);
  }
  for (const header of ["br", "zstd", "compress", "deflate-raw", "gzip, deflate", "toString"]) {
    const error = assertThrows(() => readCoding(new Headers({ "content-encoding": header })), GatewayError);
    assertEquals([error.kind, error.headers], ["unsupported_media_type", { "accept-encoding": "gzip, deflate" }]);
    assertStringIncludes(error.message, "send it as gzip, as deflate, or without one");
  }
});

Deno.test("inflate() gives back what was compressed, whatever its size", async () => {
  for (const coding of CODINGS) {
    for (const bytes of [new Uint8Array(0), noise(1), noise(2048), noise(100_000), new Uint8Array(3_000_000)]) {
      let taken = 0;
      const inflated = await inflate(await compress(bytes, coding), { coding, take: (size) => void (taken += size) });
      assertEquals(taken, bytes.byteLength);
      assert(inflated.every((byte, index) => byte === bytes[index]));
    }
  }
});

Deno.test("inflate() refuses what is not of the coding, cut off, or followed by something else", async () => {
  for (const coding of CODINGS) {
    const whole = await compress(noise(10_000), coding);
    const other = await compress("{}", coding === "gzip" ? "deflate" : "gzip");
    const damaged = whole.with(5000, (whole[5000] ?? 0) ^ 0xff);
    const longer = new Uint8Array([...whole, 1, 2, 3]);
    // The platform takes deflate that was cut off for whole: then it is the JSON that breaks off.
    const short = coding === "gzip" ? [new Uint8Array(0), whole.slice(0, -1), whole.slice(0, 20)] : [];
    for (const bytes of [other, damaged, longer, ...short]) {
      const error = await assertRejects(() => inflate(bytes, { coding, take: () => {} }), GatewayError);
      assertEquals([error.kind, error.message], ["invalid", `Cannot read the body: it is not ${coding}, or not whole`]);
    }
  }
});

Deno.test("inflate() stops a bomb soon after the limit, not at its end", async () => {
  const limit = 1_000_000;
  for (const coding of CODINGS) {
    const bomb = await compress(new Uint8Array(256_000_000), coding);
    assertLess(bomb.byteLength, 300_000);
    let taken = 0;
    const take = (size: number) => {
      taken += size;
      if (taken > limit) throw new GatewayError("too_large", "Too much");
    };
    const error = await assertRejects(() => inflate(bomb, { coding, take }), GatewayError);
    assertEquals(error.kind, "too_large");
    assertLess(taken, limit + 5_000_000);
  }
});

Deno.test("compressed bodies are read, whatever their framing", async () => {
  await using server = startServer();
  const text = JSON.stringify({ text: "Grüße ".repeat(2000) });
  for (const coding of CODINGS) {
    const body = binary(await compress(text, coding));
    const chunked = head("POST /v1/echo", { "transfer-encoding": "chunked", "content-encoding": coding }) +
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    for (const request of [post("/v1/echo", body, { "content-encoding": coding }), chunked]) {
      const response = await exchange(server.port, [request]);
      assertEquals([response.status, JSON.parse(response.body).body], [200, JSON.parse(text)]);
    }
  }
});

Deno.test("a body that inflates to more than the limit is 413, and leaves nothing behind", async () => {
  await using server = startServer();
  const bomb = binary(await compress(new Uint8Array(50_000_000), "gzip"));
  const exact = JSON.stringify({ text: "x".repeat(TEST_LIMITS.jsonBytes - 11) });
  for (let run = 0; run < 5; run++) {
    const refused = await exchange(server.port, [post("/v1/echo", bomb, { "content-encoding": "gzip" })]);
    assertEquals([refused.status, refused.body.includes(String(TEST_LIMITS.jsonBytes))], [413, true]);
    for (const body of ["no gzip", "", binary((await compress(exact, "deflate")).slice(0, 40))]) {
      for (const coding of CODINGS) {
        const broken = await exchange(server.port, [post("/v1/echo", body, { "content-encoding": coding })]);
        assertEquals(broken.status, 400);
      }
    }
    const read = await exchange(server.port, [
      post("/v1/echo", binary(await compress(exact, "gzip")), { "content-encoding": "gzip" }),
    ]);
    assertEquals(read.status, 200);
  }
  const over = binary(await compress(`${exact} `, "gzip"));
  assertEquals((await exchange(server.port, [post("/v1/echo", over, { "content-encoding": "gzip" })])).status, 413);
});

Deno.test("a body that is no JSON when it is inflated gives back what it took, once", async () => {
  const budget = new BodyBudget();
  const alarms = new Alarms();
  for (const coding of CODINGS) {
    const request = new Request("http://a/", {
      method: "POST",
      body: await compress(`{"a":"${"b".repeat(9000)}"`, coding),
    });
    const headers = new Headers({ "content-encoding": coding });
    await assertRejects(() => readJsonBody(request, { headers, limits: TEST_LIMITS, budget, alarms }), GatewayError);
    assertEquals(budget.usedBytes, 0, coding);
  }
});
