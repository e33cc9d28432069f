import { assertEquals } from "@std/assert";
import { type PackedRequest, packRequest } from "../../lib/http1/pack_request.ts";

const HEAD = "POST /v1 HTTP/1.1\r\nhost: one.example\r\naccept-encoding: identity\r\nuser-agent: sluice\r\n";
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const wireOf = ({ first, second }: PackedRequest) => textOf(first) + (second === undefined ? "" : textOf(second));

Deno.test("bodies of any length are sent in one or several pieces with the right length", () => {
  const lengths = [0, 1, 4_000, 100_000];
  for (const letter of ["x", "é", "漢"]) {
    for (const length of lengths) {
      const body = letter.repeat(length);
      const bytes = new TextEncoder().encode(body);
      const half = letter.repeat(length >> 1);
      const halfBytes = new TextEncoder().encode(half).length;
      for (
        const given of [body, [bytes], [half, bytes.subarray(halfBytes)], [
          bytes.subarray(0, halfBytes),
          "",
          body.slice(half.length),
        ]]
      ) {
        const packed = packRequest({ host: "one.example", target: "/v1", headers: {}, closes: false, body: given });
        const content = wireOf(packed) === `${HEAD}content-length: ${bytes.length}\r\n\r\n${body}`;
        assertEquals(content, true, letter + length);
      }
    }
  }
});
