import { assertRejects } from "@std/assert";
import { redisTest } from "./databases.ts";
import { eventually, soon } from "./soon.ts";

redisTest("startRedis() starts a server that ends with its process, even if that is killed", async () => {
  const module = new URL("databases.ts", import.meta.url).href;
  const text = `const { startRedis } = await import("${module}");
      console.log(new URL((await startRedis()).url).port);
      setInterval(() => {}, 1000);`;
  await using owner = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-all", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = owner.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const reader = owner.stdout.getReader();
  const { value } = await soon("the start", reader.read());
  const port = Number(new TextDecoder().decode(value));
  await reader.cancel();
  owner.kill("SIGKILL");
  await eventually(async () => {
    await assertRejects(async () => (await Deno.connect({ hostname: "127.0.0.1", port })).close());
  });
});
