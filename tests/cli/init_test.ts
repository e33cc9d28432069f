import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { init } from "../../lib/cli/init.ts";
import { isVendorName, type VendorName, vendorOf, VENDORS } from "../../lib/upstreams/vendors.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../support/program.ts";

reuseProcess();
reuseGateways();

const ROOT = new URL("../../", import.meta.url).pathname;

/** Settings that a vendor needs besides its name. */
function settingsOf(vendor: VendorName): string[] {
  return [
    ...(CATALOG.has(vendor) ? [] : ["--models", "one,acme/two"]),
    ...(vendorOf(vendor).baseUrl === undefined ? ["--base-url", "http://127.0.0.1:9/v1"] : []),
  ];
}

const CATALOG = new Set(["openai", "anthropic", "gemini", "mistral", "deepseek", "xai", "groq"]);

Deno.test("init writes for each vendor, without a terminal, a file that passes check", () =>
  inFolder(async (folder) => {
    for (const vendor of Object.keys(VENDORS).filter(isVendorName)) {
      const file = `${vendor}.jsonc`;
      const args = ["init", "--vendor", vendor, "--config", file, ...settingsOf(vendor)];
      const written = await run(args, { folder });
      assertEquals([written.code, written.err], [0, ""], vendor);
      const text = await Deno.readTextFile(`${folder}/${file}`);
      const [, variable] = /"env": "([A-Z_]+)" \} \}\n/.exec(text) ?? [];
      assertEquals(variable !== undefined, !["vllm", "ollama", "openai-compatible"].includes(vendor), vendor);
      assertStringIncludes(written.out, variable === undefined ? "Next: run " : `Next: export ${variable}=… and run `);
      const env = variable === undefined ? {} : { [variable]: "secret-0123456789abcdef" };
      const checked = await run(["check", "--json", "--config", file], { folder, env });
      assertEquals(checked.code, 0, checked.err);
      const { models } = JSON.parse(checked.out) as { models: { targets: string[] }[] };
      const own = models.filter(({ targets }) => targets.some((target) => target.startsWith(`${vendor}:`)));
      assert(own.length >= 2, `${vendor}: ${own.length}`);
    }
  }));

Deno.test("init replaces a file only with --force, and prints with --print", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, "mine");
    const args = ["init", "--vendor", "openai", "--models", "gpt-5.4,openai/o3*"];
    const refused = await run(args, { folder });
    assertEquals([refused.code, refused.out], [1, ""]);
    assertStringIncludes(refused.err, "--force");
    assertEquals(await Deno.readTextFile(`${folder}/sluice.jsonc`), "mine");
    const printed = await run([...args, "--print"], { folder });
    assertEquals([printed.code, printed.err], [0, ""]);
    assertEquals(await Deno.readTextFile(`${folder}/sluice.jsonc`), "mine");
    assertEquals((await run([...args, "--force"], { folder })).code, 0);
    assertEquals(await Deno.readTextFile(`${folder}/sluice.jsonc`), printed.out);
    assertStringIncludes(printed.out, '"openai/gpt-5.4",\n    "openai/o3*"\n');
  }));

Deno.test("init says why it cannot write the file", () =>
  inFolder(async (folder) => {
    const args = ["init", "--vendor", "openai", "--models", "gpt-5.4"];
    for (
      const [place, why] of [[["--config", "none/sluice.jsonc"], "No such file"], [
        ["--config", ".", "--force"],
        "Is a directory",
      ]] as const
    ) {
      const refused = await run([...args, ...place], { folder });
      assertEquals([refused.code, refused.out], [1, ""]);
      assertMatch(refused.err, new RegExp(`^Cannot write "${place[1]}": ${why}.*\n$`));
    }
  }));

Deno.test("init refuses unknown vendors and models, and a key in place of a variable, which it does not repeat", () =>
  inFolder(async (folder) => {
    const openai = ["--vendor", "openai"];
    const cases: [string[], RegExp][] = [
      [[], /^Expected --vendor: one of openai, /],
      [["--vendor", "acme"], /^Unknown vendor "acme"; known: openai, /],
      [[...openai, "--models", "gpt-99"], /^"gpt-99" is not in the catalog's models of openai/],
      [[...openai, "--models", "mistral/*"], /^"mistral\/\*" is not in the catalog's models of openai/],
      [["--vendor", "ollama"], /^Expected --models: the models of ollama/],
      [["--vendor", "vllm", "--models", "one"], /^Expected --base-url: the address of the vllm host/],
      ...["sk-proj-0123456789", "gsk_0123456789abcdef"].map((key): [string[], RegExp] => [
        [...openai, "--key-env", key],
        /^Expected the name of an environment variable in upper case, such as OPENAI_API_KEY, not the key itself/,
      ]),
    ];
    for (const [flags, message] of cases) {
      const { code, out, err } = await run(["init", ...flags], { folder });
      assertEquals([code, out], [2, ""], err);
      assertMatch(err, message);
      assertEquals(/0123456789/.test(err), false);
    }
    const invalid = await run(["init", "--vendor", "ollama", "--models", "a b"], { folder });
    assertEquals(invalid.code, 1);
    assertStringIncludes(invalid.err, "models[0].id: Expected");
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

Deno.test("init asks for what the flags do not say, and takes the usual answer for an empty line", () =>
  inFolder(async (folder) => {
    const path = `${folder}/asked.jsonc`;
    const questions: string[] = [];
    const answers = ["", "", "claude-opus-4-8"];
    const code = await init({ values: { config: path }, switches: new Set() }, {
      ask: (question) => {
        questions.push(question);
        return answers.shift() ?? null;
      },
      env: (name) => name === "ANTHROPIC_API_KEY" ? "secret-0123456789abcdef" : undefined,
      now: () => 0,
    });
    assertEquals(code, 0);
    assertEquals(questions.map((question) => /\[(.*)\]: $/.exec(question)?.[1]), [
      "anthropic",
      "ANTHROPIC_API_KEY",
      "anthropic/*",
    ]);
    const text = await Deno.readTextFile(path);
    assertStringIncludes(text, '"anthropic/claude-opus-4-8"');
    assertEquals(text.includes("0123456789"), false);
  }));

Deno.test("the doctor ends with the next step", () =>
  inFolder(async (folder) => {
    const last = async (env: Record<string, string> = {}) =>
      // Nothing listens on port 1. A gateway may run on the default port.
      (await run(["doctor"], { folder, env: { SLUICE_PORT: "1", ...env } })).out.trimEnd().split("\n").at(-1);
    assertMatch(await last() ?? "", /^Next: run .* init to add a vendor, or .* serve to try the embedded models$/);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "keys": [{ "name": "ci", "key": { "env": "CI_KEY" } }] }');
    assertMatch(await last() ?? "", /^Next: export CI_KEY=… and run .* serve$/);
    assertMatch(await last({ CI_KEY: "short" }) ?? "", /^Next: correct the errors above, then run .* doctor$/);
    assertMatch(await last({ CI_KEY: "0123456789abcdef" }) ?? "", /^Next: run .* serve$/);
  }));

Deno.test("in a container, the start shows the command that makes a key there", () =>
  inFolder(async (folder) => {
    const gateway = await startReused([], { folder, env: { container: "oci" } });
    gateway.kill("SIGTERM");
    await gateway.ended;
    assertStringIncludes(gateway.banner, "Add a key: docker exec CONTAINER ");
  }));

Deno.test("where init may not write, it shows a command that prints the same configuration", () =>
  inFolder(async (folder) => {
    const rights = ["--allow-env", "--allow-read=.", "--allow-write=./data"];
    const limited = async (args: readonly string[]) => {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: [
          "run",
          "--no-check",
          "--no-prompt",
          ...rights,
          "--config",
          `${ROOT}deno.json`,
          `${ROOT}main.ts`,
          ...args,
        ],
        cwd: folder,
        stdin: "null",
      }).output();
      return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
    };
    const refused = await limited([
      "init",
      "--vendor",
      "ollama",
      "--models",
      "llama3.2,acme/two",
      "--key-env",
      "OLLAMA_KEY",
    ]);
    assertEquals([refused.code, refused.out], [1, ""]);
    const [, command = ""] = /Print it instead: .*main\.ts (init .*) > sluice\.jsonc\n$/.exec(refused.err) ?? [];
    const printed = await limited(command.replaceAll("'", "").split(" "));
    assertEquals([printed.code, printed.err], [0, ""]);
    for (const part of ['"ollama/llama3.2"', '"model": "llama3.2"', '"model": "acme/two"', '{ "env": "OLLAMA_KEY" }']) {
      assertStringIncludes(printed.out, part);
    }
  }));
