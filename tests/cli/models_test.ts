import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { loadSnapshot } from "../../lib/catalog/snapshot.ts";
import { inFolder, reuseProcess, run } from "../support/program.ts";

reuseProcess();

const ENV = { OPENAI_API_KEY: "secret-0123456789abcdef" };
const UPSTREAMS = { openai: { vendor: "openai", api_key: { env: "OPENAI_API_KEY" } } };

Deno.test("models list and show print the dated facts of the release, and which models are configured", () =>
  inFolder(async (folder) => {
    const { date, models } = await loadSnapshot();
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify({ upstreams: UPSTREAMS, models: ["openai/o3"] }));
    const lines = (await run(["models", "list"], { folder })).out.split("\n");
    assertEquals(lines.length, models.length + 4);
    assertStringIncludes(lines.at(-2) ?? "", `Catalog of ${date}: ${models.length} models`);
    const yes = lines.filter((line) => line.endsWith("  yes"));
    assertEquals(yes.map((line) => line.split(/ +/).slice(0, 6)), [[
      "openai/o3",
      "openai",
      "200000",
      "100000",
      "2",
      "8",
    ]]);
    assertEquals(JSON.parse((await run(["models", "list", "--json"], { folder })).out), { date, models });
    const shown = JSON.parse((await run(["models", "show", "openai/o3"], { folder })).out);
    assertEquals(shown, models.find(({ row }) => row.id === "openai/o3"));
    const unknown = await run(["models", "show", "openai/gpt-99"], { folder });
    assertEquals([unknown.code, unknown.out], [1, ""]);
    assertStringIncludes(unknown.err, '"openai/gpt-99" is not in the catalog; see the ids in "sluice models list"');
  }));

Deno.test("models diff, models import and check show different prices, and change nothing", () =>
  inFolder(async (folder) => {
    const { date } = await loadSnapshot();
    const own = {
      id: "openai/o3",
      pricing: { prompt: "0.000003", completion: "0.000008", input_cache_read: "0.0000005" },
    };
    const file = JSON.stringify({ upstreams: UPSTREAMS, models: ["openai/gpt-4.1", own] });
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, file);
    const entry = (input: number) => ({
      litellm_provider: "openai",
      mode: "chat",
      max_output_tokens: 32_768,
      input_cost_per_token: input,
      output_cost_per_token: 8e-6,
    });
    await Deno.writeTextFile(`${folder}/list.json`, JSON.stringify({ "gpt-4.1": entry(2e-6), "o4": entry(1) }));
    await Deno.writeTextFile(`${folder}/newer.json`, JSON.stringify({ "gpt-4.1": entry(1.5e-6) }));

    const diff = await run(["models", "diff"], { folder });
    assertEquals(diff.code, 1);
    assertStringIncludes(diff.out, "openai/o3  openai    pricing.prompt");
    assertStringIncludes(diff.out, `from the catalog of ${date}. Nothing was changed`);
    assert(!diff.out.includes("gpt-4.1"));

    const same = await run(["models", "import", "list.json"], { folder });
    assertEquals([same.code, same.out], [0, "No differences found: 1 of the configured models are in list.json\n"]);
    const one = await run(["models", "import", "newer.json"], { folder });
    assertStringIncludes(one.out, "\n1 difference from newer.json. Nothing was changed");
    const newer = await run(["models", "import", "newer.json", "--json"], { folder });
    assertEquals([newer.code, JSON.parse(newer.out)], [1, {
      compared: 1,
      differences: [{
        id: "openai/gpt-4.1",
        upstream: "openai",
        model: "gpt-4.1",
        member: "pricing.prompt",
        configured: "0.000002",
        listed: "0.0000015",
      }],
      models: [{
        id: "openai/gpt-4.1",
        top_provider: { max_completion_tokens: 32_768 },
        pricing: { prompt: "0.0000015", completion: "0.000008" },
      }],
    }]);
    const wrong = await run(["models", "import", "sluice.jsonc"], { folder });
    assertEquals(wrong.code, 2);
    assertStringIncludes(wrong.err, 'Cannot read "sluice.jsonc": Cannot read the price list: expected LiteLLM\'s');

    const checked = await run(["check", "--strict"], { folder, env: ENV });
    assertEquals(checked.code, 1);
    assertStringIncludes(
      checked.out,
      `models[1].pricing.prompt: Model "openai/o3": 0.000003 is not 0.000002, as in the catalog of ${date}`,
    );
    assertEquals(await Deno.readTextFile(`${folder}/sluice.jsonc`), file);
  }));

Deno.test("models import --catalog creates a catalog file whose rows take precedence", () =>
  inFolder(async (folder) => {
    const list = {
      "o3": { litellm_provider: "openai", mode: "chat", input_cost_per_token: 1e-6, output_cost_per_token: 4e-6 },
      "gpt-99": {
        ...{ litellm_provider: "openai", mode: "chat", max_input_tokens: 5_000, max_output_tokens: 1_000 },
        ...{ input_cost_per_token: 7e-6, output_cost_per_token: 9e-6 },
      },
      "gpt-98": { litellm_provider: "openai", mode: "chat", input_cost_per_token: 1, output_cost_per_token: 1 },
    };
    await Deno.writeTextFile(`${folder}/list.json`, JSON.stringify(list));
    const made = await run(["models", "import", "list.json", "--catalog", "--only", "openai/*"], { folder });
    assertEquals(made.code, 0);
    const ignored = await run(["models", "import", "list.json", "--only", "openai/*"], { folder });
    assertEquals([ignored.code, ignored.err], [2, 'Cannot use --only without --catalog; see "sluice help"\n']);
    assertStringIncludes(made.err, "openai/o3  pricing.prompt      0.000002  0.000001");
    assertStringIncludes(made.err, "2 models, 1 new; 2 members changed\nNew: openai/gpt-99\n");
    await Deno.writeTextFile(`${folder}/catalog.json`, made.out);
    const config = {
      upstreams: UPSTREAMS,
      catalog: "catalog.json",
      models: ["openai/gpt-99", "openai/o3", "openai/gpt-4.1"],
    };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const { out } = await run(["check", "--json"], { folder, env: ENV });
    const prices = (JSON.parse(out).models as { id: string; pricing: { prompt: string } }[]).slice(0, 3);
    assertEquals(prices.map(({ id, pricing }) => [id, pricing.prompt]), [
      ["openai/gpt-99", "0.000007"],
      ["openai/o3", "0.000001"],
      ["openai/gpt-4.1", "0.000002"],
    ]);
    assertEquals((await run(["models", "diff"], { folder })).code, 0);

    for (const [text, problem] of [["{}", 'expected the output of "sluice models import FILE --catalog"'], ["{", ""]]) {
      await Deno.writeTextFile(`${folder}/catalog.json`, text ?? "");
      const wrong = await run(["check"], { folder, env: ENV });
      assertEquals([wrong.code, wrong.out], [1, ""]);
      assert(/^sluice\.jsonc:1:\d+: catalog: Cannot (use|read) "catalog.json": .*\n$/.test(wrong.err), wrong.err);
      assertStringIncludes(wrong.err, problem ?? "");
    }
  }));
