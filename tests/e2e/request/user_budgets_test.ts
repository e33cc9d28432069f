/** Budgets of the end users of a key, of a gateway in a process of its own. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { freshDatabase, isStarved, postgresTest } from "../../support/databases.ts";
import { inFolder, type Place, reuseGateways, reuseProcess, run, startReused } from "../../support/program.ts";
import { until } from "../../support/soon.ts";
import { end } from "../nodes/cluster.ts";

reuseProcess();
reuseGateways();

/** One answer has 7 tokens of output; the input is free. */
const COST = 7n;
const CONFIG = {
  admin: { key: { env: "ADMIN_KEY" } },
  embedded_models: false,
  models: [{
    id: "acme/assistant",
    created: 1_761_955_200,
    context_length: 131_072,
    pricing: { prompt: "0", completion: "0.000001" },
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
  // Pays for two answers of at most 10 tokens, one after the other, and not for a third.
  groups: { apps: { user_budget: { usd: "0.00002", period: "day" } } },
};

interface Answer {
  status: number;
  id: string;
  error: JsonObject;
}

/** A busy machine starved the database, which may have left something held for a minute. */
class Starved extends Error {}

async function behaves(place: Place): Promise<void> {
  await Deno.writeTextFile(`${place.folder}/sluice.jsonc`, JSON.stringify(CONFIG));
  const keys: Record<string, string> = {};
  for (
    const [name, ...flags] of [
      ["app"],
      ["own", "--user-budget", "0.000012", "--user-period", "total", "--budget", "1"],
      ["strict", "--user-budget", "1", "--require-user", "yes"],
    ] as const
  ) keys[name] = (await run(["keys", "add", name, "--group", "apps", ...flags], place)).out.trim();
  const shown = (await run(["keys", "show", "strict"], place)).out;
  assertStringIncludes(shown, "user budget: 1 USD per month for each end user, who must be named\n");
  const gateway = await startReused([], place);
  await using _ended = {
    async [Symbol.asyncDispose]() {
      end(gateway);
      await gateway.ended;
    },
  };
  const ask = async (
    name: string,
    user: JsonObject,
    { path = "/v1/chat/completions", headers = {} }: { path?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer> => {
    const response = await fetch(gateway.origin + path, {
      method: "POST",
      headers: { authorization: `Bearer ${keys[name]}`, "anthropic-version": "2023-06-01", ...headers },
      body: JSON.stringify({
        model: "acme/assistant",
        messages: [{ role: "user", content: "Hello, how are you today?" }],
        max_tokens: 10,
        ...user,
      }),
    });
    const text = await response.text();
    if (isStarved(response.status, text)) throw new Starved();
    return { status: response.status, id: response.headers.get("x-request-id") ?? "", error: JSON.parse(text).error };
  };
  const statusesOf = async (...answers: Promise<Answer>[]) => (await Promise.all(answers)).map(({ status }) => status);
  const admin = async (path: string) =>
    await (await fetch(`${gateway.origin}/admin/v1/${path}`, {
      headers: { authorization: `Bearer ${place.env?.ADMIN_KEY}` },
    })).json();

  assertEquals(await statusesOf(ask("app", { user: "u1" })), [200]);
  assertEquals(await statusesOf(ask("app", { user: "u1" })), [200]);
  const refused = await ask("app", { user: "u1" });
  assertEquals([refused.status, refused.error.code], [429, "insufficient_quota"]);
  assertMatch(
    String(refused.error.message),
    /more than is left of the budget of end user "u1" \(0\.00002 USD per day, of which 0\.000006 USD is left\)\. It resets on/,
  );
  // Whatever member or header names the user, it is the same one; each key has its own.
  const native = await ask("app", { metadata: { user_id: "u1" } }, { path: "/anthropic/v1/messages" });
  assertEquals([native.status, native.error.type], [429, "rate_limit_error"]);
  assertEquals(
    await statusesOf(
      ask("app", {}, { headers: { "x-sluice-user": "u1" } }),
      ask("app", { user: "u2" }),
      ask("own", { user: "u1" }),
    ),
    [429, 200, 200],
  );
  assertEquals(await statusesOf(ask("own", { user: "u1" })), [429]);
  // Requests that name no one share a budget.
  assertEquals(await statusesOf(ask("app", {})), [200]);
  assertEquals(await statusesOf(ask("app", { user: "" })), [200]);
  const unnamed = await ask("app", {});
  assertMatch(String(unnamed.error.message), /the budget of requests that name no end user/);
  const nobody = await ask("strict", {});
  assertEquals([nobody.status, nobody.error.param], [400, "user"]);
  assertEquals(await statusesOf(ask("strict", { user: "u1" })), [200]);
  // Concurrent requests do not exceed the budget.
  const many = await Promise.all(Array.from({ length: 12 }, () => ask("app", { user: "u3" })));
  const answered = BigInt(many.filter(({ status }) => status === 200).length);
  assert(answered >= 1n && answered * COST <= 20n, String(answered));

  await until("all are entered", async () => (await admin("requests?limit=100")).data.length === 25);
  const explained = (await run(["explain", refused.id], place)).out;
  assertMatch(
    explained,
    /Refused: end user "u1" of key "app" has a budget of 0\.00002 USD per day \(group apps, user_budget\) with 0\.000006 USD left; the request could cost up to 0\.00001 USD, and the budget resets on/,
  );
  const own = await admin("requests?key=own&reason=budget");
  assertMatch(
    own.data[0].why,
    /end user "u1" of key "own" has a budget of 0\.000012 USD in total \(user_budget of the key\)/,
  );

  const linesOf = async (query: string) =>
    (await admin(`budgets?${query}`)).data.map(({ scope, name, user, spent_usd }: JsonObject) => [
      ...[scope, name, user, spent_usd],
    ]);
  const u3 = ["user", "app", "u3", `0.0000${String(answered * COST).padStart(2, "0")}`];
  assertEquals(
    (await linesOf("scope=user&key=app")).toSorted(),
    [
      ["user", "app", "", "0.000014"],
      ["user", "app", "u1", "0.000014"],
      ["user", "app", "u2", "0.000007"],
      u3,
    ].toSorted(),
  );
  assertEquals(await linesOf("user=u2&key=app"), [["user", "app", "u2", "0.000007"]]);
  assertEquals(await linesOf("user=never&key=app"), [["user", "app", "never", "0"]]);
  assertEquals((await linesOf("scope=user&limit=2")).length, 2);
  assertEquals((await linesOf("")).length, 1 + 4 + 1 + 1);
  assertEquals(await linesOf("group=default"), []);
  const { error } = await admin("budgets?user=u1");
  assertEquals(error.param, "user");
  const reported = (await run(["budgets", "--key", "own", "--exact"], place)).out;
  assertMatch(
    reported,
    /\nkey +own +- +apps .*\nuser +own +u1 +apps +total +0\.000012 +0\.000007 +0 +0\.000005 +58% +never\n$/,
  );
  gateway.kill("SIGTERM");
  assertEquals((await gateway.ended).code, 0);
  const report = JSON.parse((await run(["audit", "--json"], place)).out);
  assertEquals([report.ok, report.checked.user_sums], [true, 6]);
}

Deno.test("each end user of a key has a budget, in a SQLite file", () =>
  inFolder((folder) => behaves({ folder, env: { ADMIN_KEY: "admin-key-of-the-test" } })));

async function behavesInPostgres(folder: string): Promise<boolean> {
  await using database = await freshDatabase();
  const env = { SLUICE_STORE: database.url, SLUICE_LIMITS_STORE: "", ADMIN_KEY: "admin-key-of-the-test" };
  try {
    await behaves({ folder, env });
    return true;
  } catch (error) {
    if (error instanceof Starved) return false;
    throw error;
  }
}

postgresTest("each end user of a key has a budget, in Postgres", async () => {
  let isDone = false;
  for (let tries = 0; !isDone && tries < 5; tries++) {
    await inFolder(async (folder) => void (isDone = await behavesInPostgres(folder)));
  }
  assert(isDone, "the database was starved each time");
});
