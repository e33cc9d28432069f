import { assertEquals, assertStringIncludes } from "@std/assert";
import { startBilled } from "./billed_gateway.ts";
import { inFolder, reuseGateways, reuseProcess, run } from "../support/program.ts";

reuseProcess();
reuseGateways();

Deno.test("usage shows the bill of a running gateway as table, JSON and CSV", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    await gateway.ask();
    await gateway.ask();
    await gateway.ask("acme/none");
    // Refused requests are entered in the background.
    await gateway.stop();

    const json = JSON.parse((await run(["usage", "--since", "1d", "--json"], { folder })).out);
    const figures = {
      requests: 3,
      failed: 1,
      tokens: {
        prompt: 26,
        input_cache_read: 0,
        input_cache_write_5m: 0,
        input_cache_write_1h: 0,
        completion: 14,
        reasoning: 0,
      },
      cached_percent: 0,
      cache_saved_usd: "0",
      images: 0,
      // (26 * 0.00000125 + 14 * 0.00001) * 0.8
      cost_usd: "0.000138",
      overrun_usd: "0",
    };
    assertEquals([json.by, json.lines, json.total], [
      "key",
      [{ id: gateway.keyId, name: "ci", ...figures }],
      figures,
    ]);

    const table = (await run(["usage", "--by", "group", "--since", "1d"], { folder })).out.split("\n");
    assertEquals(table.slice(2, 6), [
      "GROUP  REQUESTS  FAILED  PROMPT  CACHE READ  CACHE WRITE  CACHED  SAVED USD  COMPLETION  IMAGES  COST USD  OVERRUN USD",
      "team          3       1      26           0            0      0%          0          14       0    0.0001            0",
      "TOTAL         3       1      26           0            0      0%          0          14       0    0.0001            0",
      "",
    ]);

    assertStringIncludes((await run(["usage", "--since", "1d", "--exact"], { folder })).out, "  0.000138  ");

    const models = (await run(["usage", "--by", "model", "--since", "1d"], { folder })).out;
    assertStringIncludes(models, "\n-                      1       1       0 ");

    const today = new Date().toISOString().slice(0, 10);
    const csv = (await run(["usage", "--csv", "--by", "group,model", "--since", today], { folder })).out;
    const span = JSON.parse((await run(["usage", "--json", "--since", today], { folder })).out);
    assertEquals(csv.split("\r\n"), [
      "since,until,group,model,requests,failed,prompt,input_cache_read,input_cache_write_5m,input_cache_write_1h," +
      "completion,reasoning,images,cost_usd,overrun_usd,cache_saved_usd,currency",
      `${span.since},${span.until},team,acme/assistant,2,0,26,0,0,0,14,0,0,0.000138,0,0,USD`,
      `${span.since},${span.until},team,,1,1,0,0,0,0,0,0,0,0,0,0,USD`,
      "",
    ]);

    const pairs = (await run(["usage", "--by", "model,key", "--since", "1d"], { folder })).out.split("\n");
    assertEquals(pairs.slice(2, 4).map((line) => line.replace(/ +/g, " ")), [
      "MODEL KEY ID REQUESTS FAILED PROMPT CACHE READ CACHE WRITE CACHED SAVED USD COMPLETION IMAGES COST USD OVERRUN USD",
      `acme/assistant ci ${gateway.keyId} 2 0 26 0 0 0% 0 14 0 0.0001 0`,
    ]);
    const requests = async (...flags: string[]) => {
      const { code, out, err } = await run(["usage", "--json", ...flags], { folder });
      assertEquals([code, err], [0, ""], flags.join(" "));
      return JSON.parse(out).total.requests;
    };
    const month = today.slice(0, 7);
    assertEquals(await requests("--month", month), 3);
    assertEquals(await requests("--today") + await requests("--yesterday"), 3);
    assertEquals(await requests("--month", "2026-01"), 0);
    assertEquals(await requests("--last-month"), 0);
    for (const [flag, used, unused] of [["key", "ci", "spare"], ["group", "team", "default"]] as const) {
      if (flag === "key") await run(["keys", "add", "spare"], { folder });
      assertEquals([await requests("--since", "1d", `--${flag}`, used), await requests(`--${flag}`, unused)], [3, 0]);
    }
    assertEquals(await requests("--since", "1d", "--model", "acme/assistant", "--group", "team"), 2);
    const upstream = JSON.parse(
      (await run(["usage", "--by", "upstream", "--key", "spare", "--json"], { folder })).out,
    );
    assertEquals(upstream.lines, []);
  }));

Deno.test("usage reports errors in one line, and creates no store", () =>
  inFolder(async (folder) => {
    const cases: [string[], number, string][] = [
      [["--since", "yesterday"], 2, 'Cannot read the moment "yesterday"'],
      [["--since", "1d", "--until", "2d"], 2, "Cannot sum up: the period ends at"],
      [["--by", "model,upstream"], 2, 'Cannot sum up by "upstream" and something else: sum up by it alone'],
      [["--by", "colour"], 2, 'Cannot sum up by "colour"; known: key, group, model, day, user, tag, upstream'],
      [["--by", "group,colour"], 2, 'Cannot sum up by "colour"'],
      [["--by", "group,group"], 2, 'Cannot sum up by "group,group": expected one or two different of'],
      [["--month", "2026-13"], 2, 'Cannot read the period "2026-13"'],
      [["--today", "--month", "2026-10"], 2, "Expected one of --month, --last-month, --today and --yesterday"],
      [["--today", "--since", "1d"], 2, "Cannot use a named period together with a beginning or an end"],
      [["--json", "--csv"], 2, "Expected --json or --csv, not both"],
      [[], 1, 'Cannot read the store "./data/sluice.db": there is no such file; start the gateway once'],
      [["--store", "memory:"], 1, 'Cannot read the store: it is "memory:"'],
    ];
    for (const [flags, code, line] of cases) {
      const ended = await run(["usage", ...flags], { folder });
      assertEquals([ended.code, ended.out, ended.err.split("\n").length], [code, "", 2], ended.err);
      assertStringIncludes(ended.err, line);
    }
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

Deno.test("commands that only use the store need no secrets; commands that use secrets do", () =>
  inFolder(async (folder) => {
    const file = {
      admin: { key: { env: "SECRET_ADMIN_KEY_OF_TEST" } },
      upstreams: { host: { vendor: "openai", api_key: { env: "SECRET_HOST_KEY_OF_TEST" } } },
      keys: [{ name: "ci", key: { env: "SECRET_CI_KEY_OF_TEST" } }],
    };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(file));
    assertEquals((await run(["keys", "add", "bob"], { folder })).code, 0);
    for (const command of [["usage"], ["keys", "list"], ["audit"], ["prune"]]) {
      const { code, err } = await run(command, { folder });
      assertEquals([code, err], [0, ""], command.join(" "));
    }
    for (const command of [["check"], ["serve"]]) {
      const { code, err } = await run(command, { folder });
      assertEquals([code, /SECRET_ADMIN_KEY_OF_TEST.*not set/.test(err)], [1, true], command.join(" "));
    }
  }));
