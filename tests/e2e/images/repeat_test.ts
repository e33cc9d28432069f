import { assertEquals } from "@std/assert";
import { errorOf, formOf, painter, paintsAll, startPainted } from "./gateway.ts";
import { png } from "../../images/image_files.ts";

const REPLAY = "x-sluice-idempotent-replay";

function withKey(key: string): RequestInit {
  return { headers: { "idempotency-key": key } };
}

Deno.test("a repeated generation gets the same answer, charged once", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const first = await gateway.generate({ n: 2 }, withKey("a"));
  const second = await gateway.generate({ n: 2 }, withKey("a"));
  assertEquals([first.headers.get(REPLAY), second.headers.get(REPLAY)], [null, "true"]);
  for (const name of ["content-type", "x-sluice-image-size"]) {
    assertEquals(second.headers.get(name), first.headers.get(name));
  }
  assertEquals([first, second].map(({ headers }) => headers.get("x-sluice-cost")), ["0.0493935", "0"]);
  assertEquals(await second.text(), await first.text());
  assertEquals(upstream.calls.length, 1);
});

Deno.test("a repeated edit is recognized by its images and fields, whatever the form's boundary", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const bodies: string[] = [];
  for (let round = 0; round < 2; round++) {
    const response = await gateway.edit(formOf({}, [["image", png(1024, 1024), `${round}.png`]]), withKey("a"));
    assertEquals(response.status, 200);
    bodies.push(await response.text());
  }
  assertEquals([bodies[0] === bodies[1], upstream.calls.length], [true, 1]);
  const other = await gateway.edit(formOf({}, [["image", png(1024, 1040)]]), withKey("a"));
  assertEquals((await errorOf(other)).status, 400);
});

Deno.test("a key used for another request is a 400; another endpoint has its own keys", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  await (await gateway.generate({}, withKey("a"))).body?.cancel();
  const error = await errorOf(await gateway.generate({ prompt: "A dog" }, withKey("a")));
  assertEquals([error.status, /used for another request/.test(error.message)], [400, true]);
  const edit = await gateway.edit(formOf({}, [["image", png(1024, 1024)]]), withKey("a"));
  await edit.body?.cancel();
  assertEquals([edit.status, upstream.calls.length], [200, 2]);
});

Deno.test("repeats count as requests of their key, and are refused before their answer is read", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) }, {
    groups: { default: { key_limits: { requests_per_minute: 2, tokens_per_minute: 2_000, concurrency: 1 } } },
  });
  const statuses: number[] = [];
  for (let round = 0; round < 3; round++) {
    const response = await gateway.generate({}, withKey("a"));
    await response.body?.cancel();
    statuses.push(response.status);
  }
  assertEquals(statuses, [200, 200, 429]);
});

Deno.test("a repeat needs no tokens of the limit that its first request has used up", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) }, {
    groups: { default: { key_limits: { tokens_per_minute: 100 } } },
  });
  const statuses: number[] = [];
  for (const key of ["a", "a", "b"]) {
    const response = await gateway.generate({}, withKey(key));
    await response.body?.cancel();
    statuses.push(response.status);
  }
  assertEquals(statuses, [200, 200, 429]);
});
