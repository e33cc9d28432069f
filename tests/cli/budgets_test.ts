/** Budgets as operators and holders of keys see them, of a gateway in a process of its own. */
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { PRICED } from "./billed_gateway.ts";
import { inFolder, type Place, reuseGateways, reuseProcess, run, startReused } from "../support/program.ts";

reuseProcess();
reuseGateways();

const CONFIG = {
  admin: { key: { env: "ADMIN_KEY" } },
  ...PRICED,
  groups: {
    team: {
      budget: { usd: "10", period: "month" },
      limits: { tokens_per_minute: 200_000 },
      key_budget: { usd: "3", period: "week" },
      key_limits: { requests_per_minute: 60, concurrency: 4 },
    },
    bare: {},
  },
};

/** 13 * 0.00000125 + 7 * 0.00001 */
const COST = "0.00008625";

const MONTH_END = /^20\d\d-\d\d-01T00:00:00\.000Z$/;

async function behaves(place: Place): Promise<void> {
  const { folder } = place;
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
  assertEquals((await run(["budgets"], place)).code, place.env?.SLUICE_STORE === undefined ? 1 : 0);
  const keys: Record<string, { key: string; id: string }> = {};
  const added: [name: string, flags: string[]][] = [
    ["anna", ["--group", "team"]],
    ["bert", ["--group", "team", "--budget", "0.5", "--period", "total", "--rpm", "9"]],
    ["carl", ["--group", "bare"]],
    ["gone", ["--group", "team"]],
  ];
  for (const [name, flags] of added) {
    const { out, err } = await run(["keys", "add", name, ...flags], place);
    keys[name] = { key: out.trim(), id: /key_[\w-]+/.exec(err)?.[0] ?? "" };
  }
  await run(["keys", "revoke", "gone"], place);
  const idOf = (name: string) => keys[name]?.id ?? "";
  const gateway = await startReused([], place);
  try {
    const headers = (name: string) => ({ authorization: `Bearer ${keys[name]?.key}` });
    const ask = async (name: string, more: Record<string, string> = {}) => {
      const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headers(name), ...more },
        body: JSON.stringify({
          model: "acme/assistant",
          messages: [{ role: "user", content: "Hello, how are you today?" }],
        }),
      });
      await response.text();
      assertEquals(response.status, 200);
    };
    const own = async (name: string): Promise<JsonObject> =>
      await (await fetch(`${gateway.origin}/v1/usage`, { headers: headers(name) })).json();
    for (const name of ["anna", "bert", "carl"]) await ask(name);
    await ask("bert", { "x-sluice-user": "u-7", "x-sluice-tags": "beta,web" });

    const { data } = JSON.parse((await run(["budgets", "--json"], place)).out) as { data: JsonObject[] };
    const [team, anna, bert] = data;
    const amounts = ({ budget_usd, spent_usd, held_usd, left_usd }: JsonObject = {}) => [
      ...[budget_usd, spent_usd, held_usd, left_usd],
    ];
    assertEquals(data.map(({ scope, id, name, group, period }) => [scope, id, name, group, period]), [
      ["group", "team", "team", "team", "month"],
      ["key", idOf("anna"), "anna", "team", "week"],
      ["key", idOf("bert"), "bert", "team", "total"],
    ]);
    assertEquals(amounts(team), ["10", "0.00025875", "0", "9.99974125"]);
    assertEquals(amounts(anna), ["3", COST, "0", "2.99991375"]);
    assertEquals(amounts(bert), ["0.5", "0.0001725", "0", "0.4998275"]);
    assertMatch(String(team?.resets_at), MONTH_END);
    assertEquals(new Date(String(anna?.resets_at)).getUTCDay(), 1);
    assertEquals(bert?.resets_at, null);
    const admin = { headers: { authorization: `Bearer ${place.env?.ADMIN_KEY}` } };
    const answer = await (await fetch(`${gateway.origin}/admin/v1/budgets`, admin)).json();
    assertEquals(answer, { object: "list", data });

    const table = (await run(["budgets"], place)).out.split("\n");
    assertMatch(
      table[0] ?? "",
      /^SCOPE +NAME +GROUP +PERIOD +BUDGET USD +SPENT USD +HELD USD +LEFT USD +USED +RESETS AT$/,
    );
    assertMatch(table[1] ?? "", /^group +team +team +month +10 +0\.0003 +0 +9\.9997 +0% +20\d\d-\d\d-01T00:00:00Z$/);
    assertMatch(table[3] ?? "", /^key +bert +team +total +0\.5 +0\.0002 +0 +0\.4998 +0% +never$/);
    assertStringIncludes((await run(["budgets", "--exact"], place)).out, " 0.0001725 ");
    const csv = (await run(["budgets", "--csv"], place)).out.split("\r\n");
    assertEquals(csv[0], "scope,name,id,group,period,budget_usd,spent_usd,held_usd,left_usd,resets_at,user");
    assertEquals(csv[3], `key,bert,${idOf("bert")},team,total,0.5,0.0001725,0,0.4998275,,`);

    const { scope: _, id: __, name: ___, group: ____, user: _____, ...state } = bert ?? {};
    const shown = JSON.parse((await run(["keys", "show", "bert", "--json"], place)).out);
    assertEquals(shown.budget, state);
    assertEquals(await (await fetch(`${gateway.origin}/admin/v1/keys/bert`, admin)).json(), shown);
    const lines = (await run(["keys", "list"], place)).out;
    assertMatch(lines, /anna .* {2}0\.0001\/3 per week\n.*bert .* {2}0\.0002\/0\.5 in total\n.*carl .* {2}-\n/);
    assertStringIncludes(
      (await run(["keys", "show", "anna"], place)).out,
      `spent:       ${COST} of 3 USD per week, 0 held, 2.99991375 left, resets at ${anna?.resets_at}`,
    );

    const other = await run(["budgets", "--scope", "key", "--key", "bert", "--user", "u-7"], place);
    assertEquals([other.code, other.err], [2, 'Cannot use scope "key" together with "user"; see "sluice help"\n']);

    const sums = async (...flags: string[]) => {
      const { lines, total } = JSON.parse((await run(["usage", "--today", "--json", ...flags], place)).out);
      return [lines.map(({ name, then_name, requests }: JsonObject) => [name, then_name, requests]), total.requests];
    };
    assertEquals(await sums("--by", "user"), [[["", undefined, 3], ["u-7", undefined, 1]], 4]);
    assertEquals(await sums("--by", "tag,user", "--tag", "web"), [[["beta", "u-7", 1], ["web", "u-7", 1]], 1]);
    assertEquals(await sums("--by", "group,model", "--key", "bert"), [[["team", "acme/assistant", 2]], 2]);

    // A key holder sees its own amounts, and the rest of the group's budget.
    const { spent, budgets, limits, ...whose } = await own("bert");
    const key = { id: idOf("bert"), name: "bert", group: "team" };
    assertEquals(whose, { object: "usage", key, user_budget: null });
    assertEquals((spent as JsonObject[]).map(({ period, spent_usd }) => [period, spent_usd]), [
      ["day", "0.0001725"],
      ["month", "0.0001725"],
    ]);
    assertEquals(budgets, [{ owner: "key", ...state }, {
      owner: "group",
      ...{ period: "month", budget_usd: "10", left_usd: "9.99974125", resets_at: team?.resets_at },
    }]);
    const known = (limits as JsonObject[]).map(({ owner, unit, limit, left }) => [owner, unit, limit, left]);
    assertEquals(known, [["key", "requests", 9, 7], ["group", "tokens", 200_000, 200_000 - 60]]);
    const [requests, slots] = (await own("anna")).limits as JsonObject[];
    assertEquals([requests?.unit, requests?.limit, requests?.left], ["requests", 60, 59]);
    assertMatch(String(requests?.resets_at), /^20\d\d-.*Z$/);
    assertEquals(slots, { owner: "key", unit: "concurrency", limit: 4, used: 0, left: 4, resets_at: null });
    assertEquals([(await own("carl")).budgets, (await own("carl")).limits], [[], []]);
    const refused = await fetch(`${gateway.origin}/v1/usage`);
    assertEquals([refused.status, (await refused.json()).error.code], [401, "invalid_api_key"]);
  } finally {
    gateway.kill("SIGTERM");
    await gateway.ended;
  }
  // Asking for them was no request: the ledger has the four answers.
  assertEquals(JSON.parse((await run(["usage", "--json"], place)).out).total.requests, 4);
}

Deno.test("budgets and keys show spent, held and remaining amounts to operators and key holders", () =>
  inFolder((folder) => behaves({ folder, env: { ADMIN_KEY: "admin-key-of-the-test" } })));

postgresTest("budgets and keys show the same amounts over a database", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    const env = { SLUICE_STORE: database.url, SLUICE_LIMITS_STORE: "", ADMIN_KEY: "admin-key-of-the-test" };
    // Makes the tables.
    await run(["keys", "add", "first"], { folder, env });
    await behaves({ folder, env });
  }));
