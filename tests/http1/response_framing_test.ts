import { assert, assertEquals, assertThrows } from "@std/assert";
import { MalformedResponse } from "../../lib/http1/errors.ts";
import { type BodyFraming, parseHead, readFraming } from "../../lib/http1/response_head.ts";
import { workedMs } from "../support/turns.ts";

const read = (first: string, lines: string[]) =>
  readFraming(parseHead(new TextEncoder().encode([first, ...lines, "", ""].join("\r\n"))));
const OK = "HTTP/1.1 200 OK";
const OLD = "HTTP/1.0 200 OK";

Deno.test("framing decides the end of a body and the reuse of the connection", () => {
  const none: BodyFraming = 0;
  const chunked: BodyFraming = "chunked";
  const close: BodyFraming = "close";
  const five: BodyFraming = 5;
  const cases: [first: string, lines: string[], framing: BodyFraming, keeps: boolean][] = [
    [OK, ["content-length: 5"], five, true],
    [OK, ["Content-Length:5"], five, true],
    [OK, ["content-length: 5", "content-length: 5"], five, true],
    [OK, ["content-length: 5, 5"], five, true],
    [OK, ["content-length: 5 \t,\t 5"], five, true],
    [OK, ["content-length: 0005"], five, true],
    [OK, ["content-length: 0"], none, true],
    [OK, ["content-length: 5", "connection: close"], five, false],
    [OK, ["content-length: 5", "connection: Keep-Alive"], five, true],
    [OK, ["content-length: 5", "connection: keep-alive, Close"], five, false],
    [OK, ["content-length: 5", "connection: keep-alive", "connection: close"], five, false],
    [OK, ["content-length: 5", "connection: x-closed"], five, true],
    [OK, ["transfer-encoding: chunked"], chunked, true],
    [OK, ["Transfer-Encoding: Chunked"], chunked, true],
    [OK, [], close, false],
    [OK, ["connection: keep-alive"], close, false],
    [OLD, ["content-length: 5"], five, false],
    [OLD, ["content-length: 5", "connection: keep-alive"], five, true],
    [OLD, ["content-length: 5", "connection: x-kept"], five, false],
    [OLD, [], close, false],
    ["HTTP/1.1 204 No Content", [], none, true],
    ["HTTP/1.1 204 No Content", ["content-length: 0"], none, true],
    ["HTTP/1.1 204 No Content", ["content-length: 5"], none, false],
    ["HTTP/1.1 204 No Content", ["transfer-encoding: chunked"], none, false],
    ["HTTP/1.1 304 Not Modified", ["content-length: 5"], none, true],
  ];
  for (const [first, lines, framing, keeps] of cases) {
    const answer = read(first, lines);
    assertEquals([answer.framing, answer.isPersistent], [framing, keeps], `${first} ${lines}`);
  }
});

Deno.test("an ambiguous end of the body is rejected", () => {
  const cases: string[][] = [
    ["content-length: 5", "transfer-encoding: chunked"],
    ["transfer-encoding: chunked", "content-length: 0"],
    ["content-length: 5", "content-length: 6"],
    ["content-length: 5", "content-length: 05"],
    ["content-length: 5, 6"],
    ["content-length: 5,"],
    ["content-length: -5"],
    ["content-length: +5"],
    ["content-length: 0x5"],
    ["content-length: 5.0"],
    ["content-length: 5 5"],
    ["content-length: 1e3"],
    ["content-length:"],
    ["content-length: 9007199254740992"],
    ["content-length: 99999999999999999999"],
    ["transfer-encoding: identity"],
    ["transfer-encoding: gzip, chunked"],
    ["transfer-encoding: chunked, chunked"],
    ["transfer-encoding: chunked", "transfer-encoding: chunked"],
    ["transfer-encoding: chunked", "transfer-encoding: identity"],
    ["transfer-encoding: xchunked"],
    ["transfer-encoding: chunked;q=1"],
    ["transfer-encoding:"],
    ["transfer-encoding: \x0bchunked".replace("\x0b", "\xa0")],
  ];
  for (const lines of cases) assertThrows(() => read(OK, lines), MalformedResponse, undefined, String(lines));
  assertThrows(() => read(OLD, ["transfer-encoding: chunked"]), MalformedResponse);
});

Deno.test("the server's keep-alive timeout is respected", () => {
  const cases: [string[], number | undefined][] = [
    [["keep-alive: timeout=5"], 5_000],
    [["keep-alive: timeout=5, max=100"], 5_000],
    [["keep-alive: max=100, Timeout=72"], 72_000],
    [["keep-alive: mytimeout=5"], undefined],
    [["keep-alive: timeout=x"], undefined],
    [["keep-alive: timeout=5", "connection: close"], undefined],
    [[], undefined],
  ];
  for (const [lines, ms] of cases) {
    assertEquals(read(OK, ["content-length: 0", ...lines]).keepAliveMs, ms, String(lines));
  }
});

Deno.test("a length with many spaces is read in linear time", () => {
  const started = workedMs();
  for (let round = 0; round < 20; round++) {
    assertThrows(() => read(OK, [`content-length: 5${" ".repeat(16_000)}5`]), MalformedResponse);
  }
  assert(workedMs() - started < 1_000);
});
