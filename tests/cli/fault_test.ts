import { assert, assertEquals, assertMatch } from "@std/assert";
import { inFolder, run } from "../support/program.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("fault serves until it is stopped, and prints statistics", async () => {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-check", "--no-prompt", "--allow-net", "--allow-env", "--allow-read"],
      ...["--config", `${ROOT}deno.json`, `${ROOT}main.ts`, "fault", "--port", "0", "--always", "status:503"],
    ],
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let out = "";
  while (!out.includes("As an upstream")) {
    const { done, value } = await reader.read();
    assert(!done, out);
    out += value;
  }
  assertMatch(out, /which always answers with status:503/);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0] ?? "";
  const body = JSON.stringify({ model: "any", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] });
  const response = await fetch(`${url}/v1/messages`, { method: "POST", body });
  assertEquals([response.status, (await response.json()).type], [503, "error"]);
  child.kill("SIGTERM");
  for (let read = await reader.read(); !read.done; read = await reader.read()) out += read.value;
  assertEquals((await child.status).code, 0);
  assertMatch(out, /\/v1\/messages: status, status 503\n/);
});

Deno.test("fault rejects unknown arguments", async () => {
  await inFolder(async (folder) => {
    for (
      const [args, says] of [
        [["--always", "nonsense"], /^Unknown fault "nonsense". Known faults: status:429, /],
        [["--port", "99999"], /^Cannot listen on port "99999"/],
      ] as const
    ) {
      const { code, out, err } = await run(["fault", ...args], { folder });
      assertEquals([code, out], [2, ""], err);
      assertMatch(err, says);
    }
  });
});
