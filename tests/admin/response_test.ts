import { assert, assertEquals } from "@std/assert";
import { adminResponse, streamedAdminResponse } from "../../lib/admin/response.ts";

const item = (place: number) => ({ place, name: `ключ "${place}" 😀`, none: undefined, list: [null, [place]] });

Deno.test("streamedAdminResponse() sends the same body as adminResponse(), at any length", async () => {
  const long = Array.from({ length: 1001 }, (_, place) => item(place));
  const values: Record<string, object> = {
    "nothing": {},
    "a short list": { object: "list", data: long.slice(0, 3) },
    "lists to the slice": { data: long.slice(0, 100), more: long.slice(0, 200) },
    "a long list first": { data: long, total: { cost: "0.1" } },
    "a long list last": { since: "now", gone: undefined, data: long },
    "two long lists": { a: long, b: undefined, c: long.slice(0, 101), d: 1 },
    "strange items": { data: Array.from({ length: 300 }, (_, at) => at % 2 === 0 ? undefined : at) },
  };
  for (const [name, value] of Object.entries(values)) {
    const [expected, answer] = [adminResponse(value), await streamedAdminResponse(value)];
    assertEquals(answer.status, expected.status);
    assertEquals([...answer.headers].filter(([each]) => each !== "content-length"), [...expected.headers], name);
    assert(await answer.text() === await expected.text(), name);
  }
});
