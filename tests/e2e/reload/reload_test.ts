import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { addressWithoutPassword } from "../../../lib/config/address.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { seeded } from "../../support/random.ts";
import { goodFile, mutantOf, SECRETS } from "./mutants.ts";
import { startReloadable } from "./reloadable_gateway.ts";
import { rounds } from "../../support/skip.ts";
import { errorBody, prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { oneModel, UPSTREAM_KEY } from "../../support/gateway.ts";
import { until } from "../../support/soon.ts";

const MUTANTS = rounds(2_000);

Deno.test("under load, invalid files change nothing, and each is reported with the invalid member", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const { gateway, logs } = world;
  const before = gateway();
  const random = seeded(20_261_121);
  let over = false;
  const statuses = new Map<number, number>();
  const clients = Promise.all(PROTOCOLS.map(async (protocol) => {
    while (!over) {
      const response = await world.ask(prompt(protocol), protocol);
      await response.text();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  }));
  for (let number = 0; number < MUTANTS; number++) {
    const { text, names } = mutantOf(random);
    world.write(text);
    logs.length = 0;
    const reloaded = await before.reloader.reload("file");
    assertEquals(reloaded.outcome, "refused", text.slice(0, 2000));
    const lines = logs.filter(({ event }) => event === "reload_refused").map(({ problem }) => String(problem));
    assert(lines.some((line) => line.includes(names)), `${names}: ${lines.join("\n")}`);
    assert(!JSON.stringify([lines, reloaded]).includes("0123456789"), "a secret is told");
    // Lets clients run.
    if (number % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  over = true;
  await clients;
  assertEquals([...statuses.keys()], [200]);
  assert(gateway() === before);
  const { version, last_error } = before.reloader.status();
  assertEquals([version, last_error?.problems.length !== 0], [1, true]);
  world.write(JSON.stringify({ ...goodFile(), keep_alive_seconds: 16 }));
  assertEquals(await before.reloader.reload("file"), { outcome: "changed", ignored: [] });
  assertEquals([gateway().config.keep_alive_seconds, before.reloader.status().version], [16, 2]);
  assertEquals(before.reloader.status().last_error, undefined);
});

Deno.test("equal content changes nothing, a changed secret does, and restart-only settings are reported", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const { gateway, logs, env } = world;
  const first = gateway();
  const { reloader } = first;
  world.write(`// the same, said again\n${JSON.stringify(goodFile())}`);
  assertEquals(await reloader.reload("signal"), { outcome: "unchanged", ignored: [] });
  assert(gateway() === first);
  env.set("HOST_KEY", "another-host-key");
  assertEquals((await reloader.reload("signal")).outcome, "changed");
  const file = goodFile();
  world.write(JSON.stringify({
    ...file,
    listen: { port: 1 },
    store: "sqlite:other.db",
    admin: { key: { env: "OPERATOR_KEY" }, listen: { port: 2 } },
    keep_alive_seconds: 20,
  }));
  logs.length = 0;
  const ignored = ["listen", "store", "admin.listen"];
  assertEquals(await reloader.reload("admin"), { outcome: "changed", ignored });
  const { config } = gateway();
  assertEquals(
    [config.listen.port, addressWithoutPassword(config.store), config.admin?.listen, config.keep_alive_seconds],
    [8790, "sqlite:./data/sluice.db", undefined, 20],
  );
  assertEquals(logs.map(({ level, event, member, version }) => [level, event, member, version]), [
    ["info", "reloaded", undefined, 3],
    ...ignored.map((member) => ["warn", "reload_ignored", member, 3]),
  ]);
});

Deno.test("reloads requested during a read lead to one more read", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const { reloader } = world.gateway();
  const first = reloader.reload("file");
  world.write(JSON.stringify({ ...goodFile(), keep_alive_seconds: 99 }));
  const others = Array.from({ length: 50 }, () => reloader.reload("file"));
  await Promise.all([first, ...others]);
  assertEquals([world.gateway().config.keep_alive_seconds, reloader.status().version], [99, 2]);
});

Deno.test("the admin API shows the active configuration without secrets, and reloads it or reports problems", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const ask = async (method: string, path: string) => {
    const response = await fetch(`${world.origin}/admin/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${world.env.get("OPERATOR_KEY")}` },
    });
    return { status: response.status, text: await response.text() };
  };
  const shown = await ask("GET", "config");
  assertEquals([shown.status, JSON.parse(shown.text).version], [200, 1]);
  for (const secret of Object.values(SECRETS)) assert(secret === "" || !shown.text.includes(secret));
  assert(!/hash|[0-9a-f]{64}/.test(shown.text));
  world.write(JSON.stringify({ ...goodFile(), keep_alive_seconds: 5 }));
  const changed = await ask("POST", "reload");
  assertEquals([changed.status, JSON.parse(changed.text).version, JSON.parse(changed.text).outcome], [
    200,
    2,
    "changed",
  ]);
  world.write("{");
  const refused = await ask("POST", "reload");
  assertEquals(refused.status, 400);
  assertStringIncludes(JSON.parse(refused.text).error.message, "sluice.jsonc:1:2: ");
  const after = JSON.parse((await ask("GET", "config")).text);
  assertEquals([after.version, after.config.keep_alive_seconds, after.last_error.problems.length], [2, 5, 1]);
});

/** An upstream that sends a word on command, and notices when its clients disconnect. */
function wordyHost() {
  const turns: (() => void)[] = [];
  let words = 0;
  let isOver = false;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    const frame = (delta: JsonObject, finish: string | null = null) =>
      new TextEncoder().encode(
        `data: ${
          JSON.stringify({
            id: "1",
            object: "chat.completion.chunk",
            choices: [{ index: 0, delta, finish_reason: finish }],
          })
        }\n\n`,
      );
    return new Response(
      new ReadableStream({
        async pull(controller) {
          if (!isOver) await new Promise<void>((resolve) => turns.push(resolve));
          if (++words <= 4) return controller.enqueue(frame({ content: `word${words} ` }));
          controller.enqueue(frame({}, "stop"));
          controller.enqueue(new TextEncoder().encode("data: [DONE]\n\n"));
          controller.close();
        },
      }, { highWaterMark: 0 }),
      { headers: { "content-type": "text/event-stream" } },
    );
  });
  return {
    port: server.addr.port,
    async say() {
      await until("a request for the next word", () => turns.length > 0);
      turns.shift()?.();
    },
    /** Sends the rest by itself. */
    finish() {
      isOver = true;
      for (const resolve of turns) resolve();
    },
    end: () => server.shutdown(),
  };
}

Deno.test("a stream keeps its prices through three reloads, and its connections are closed afterwards", async () => {
  const host = wordyHost();
  const priced = (price: string): JsonObject => ({
    upstreams: { host: { vendor: "openai-compatible", base_url: `http://127.0.0.1:${host.port}/v1` } },
    models: [{
      id: "acme/words",
      created: 0,
      context_length: 1000,
      pricing: { prompt: "0", completion: price },
      targets: [{ upstream: "host", model: "words" }],
    }],
  });
  {
    await using world = await startReloadable(priced("0.001"));
    // Also where something fails: the gateway waits for the stream.
    using _rest = { [Symbol.dispose]: host.finish };
    const first = world.gateway();
    let closed = 0;
    for (const upstream of first.upstreams.values()) {
      const { close } = upstream;
      upstream.close = () => {
        closed++;
        close();
      };
    }
    const requested = world.ask({ model: "acme/words", stream: true, messages: [{ role: "user", content: "Hello" }] });
    await host.say();
    const text = (await requested).text();
    for (const price of ["1", "2", "3"]) {
      world.write(JSON.stringify(priced(price)));
      assertEquals((await first.reloader.reload("file")).outcome, "changed");
      await host.say();
      assertEquals(closed, 0);
    }
    await host.say();
    assertStringIncludes(await text, "word4");
    await first.uses.whenDone();
    await new Promise((resolve) => setTimeout(resolve, 0));
    assertEquals(closed, first.upstreams.size);
    await first.ledger.flush();
    const [entry] = await first.store.ledger.entries({ after: 0, limit: 1 });
    assert(entry !== undefined);
    // Thousandths: the price of the beginning.
    assertLess(Number(entry.cost) / 1e12, 0.1);
    assert(entry.cost > 0n);
  }
  await host.end();
});

Deno.test("50 reloads leak no connection and no timer", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const { reloader } = world.gateway();
  let open = 0;
  const count = () => {
    for (const upstream of world.gateway().upstreams.values()) {
      const { close } = upstream;
      open++;
      upstream.close = () => {
        open--;
        close();
      };
    }
  };
  count();
  const each = open;
  for (let number = 0; number < 50; number++) {
    world.write(JSON.stringify({ ...goodFile(), keep_alive_seconds: 20 + number }));
    const protocol = PROTOCOLS[number % PROTOCOLS.length] ?? "chat";
    const requested = world.ask(prompt(protocol), protocol);
    assertEquals((await reloader.reload("file")).outcome, "changed");
    count();
    assertEquals((await (await requested).text()).includes("Hello"), true);
  }
  await until("all others are closed", () => open <= each);
  assertEquals([open, reloader.status().version], [each, 51]);
});

Deno.test("a reload that an operator asks for probes refused keys at once, even of the same configuration", async () => {
  let isAccepted = false;
  await using host = startUpstream(({ method }) =>
    !isAccepted
      ? json(errorBody("chat", "who"), { status: 401 })
      : json(method === "GET" ? { object: "list", data: [] } : WHOLE.chat)
  );
  await using world = await startReloadable(oneModel("chat", host.url), { UPSTREAM_KEY });
  const hasLogged = (name: string) => () => world.logs.some(({ event }) => event === name);
  const statusOf = async () => {
    const response = await world.ask(prompt("chat"));
    await response.text();
    return response.status;
  };
  assertEquals(await statusOf(), 502);
  await until("the refusal", hasLogged("upstream_key_refused"));
  isAccepted = true;
  const from = performance.now();
  assertEquals(await statusOf(), 503);
  assertEquals((await world.gateway().reloader.reload("signal")).outcome, "unchanged");
  await until("the probe", hasLogged("upstream_key_accepted"));
  // Otherwise it is probed after 15 seconds.
  assertLess(performance.now() - from, 12_000);
  assertEquals(await statusOf(), 200);
});

Deno.test("a failing upstream that a reload removes is not reported any more", async () => {
  await using host = startUpstream(() => json(errorBody("chat", "fail"), { status: 500 }));
  await using world = await startReloadable(oneModel("chat", host.url), { UPSTREAM_KEY });
  const readiness = async () => await (await fetch(`${world.origin}/readyz`)).json();
  for (let request = 0; request < 5; request++) await (await world.ask(prompt("chat"))).text();
  assertEquals((await readiness()).status, "degraded");
  world.write(JSON.stringify({ models: [] }));
  assertEquals((await world.gateway().reloader.reload("signal")).outcome, "changed");
  assertEquals([await readiness(), world.gateway().health.snapshot()], [{ status: "ok" }, []]);
});

Deno.test("the metric of the configuration and readiness show that a file was refused", async () => {
  await using world = await startReloadable(goodFile(), SECRETS);
  const { reloader } = world.gateway();
  const metric = async () => {
    const headers = { authorization: `Bearer ${SECRETS.OPERATOR_KEY}` };
    const text = await (await fetch(`${world.origin}/metrics`, { headers })).text();
    return /^sluice_config_healthy (\d)$/m.exec(text)?.[1];
  };
  const readiness = async () => await (await fetch(`${world.origin}/readyz`)).json();
  const refused = "degraded: the last reload was refused, and the configuration before it is in force";
  assertEquals([await metric(), await readiness()], ["1", { status: "ok" }]);
  world.write("{ mistake");
  assertEquals([(await reloader.reload("file")).outcome, await metric()], ["refused", "0"]);
  assertEquals(await readiness(), { status: "degraded", message: refused });
  world.write(JSON.stringify(goodFile()));
  assertEquals([(await reloader.reload("file")).outcome, await metric()], ["unchanged", "1"]);
  assertEquals(await readiness(), { status: "ok" });
});
