/** Tests of the commands that test something, as programs. */
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { startGateway } from "../support/gateway.ts";
import { json, startUpstream } from "../upstream/mod.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused, startWithKey } from "../support/program.ts";

reuseProcess();
reuseGateways();

const TLS = new URL("../fixtures/tls/", import.meta.url);

Deno.test("conform prints a report, exits with 0 without failures, and never prints the key", async () => {
  await using gateway = startGateway({}, { now: Date.now });
  const { key } = gateway.key;
  await inFolder(async (folder) => {
    const place = { folder, env: { SLUICE_CONFORM_KEY: key } };
    const args = ["conform", `${gateway.url}/v1/`, "--model", "sluice/echo", "--only", "models,messages"];
    const { code, out, err } = await run(args, place);
    assertEquals([code, err], [0, ""]);
    assertMatch(out, /^ {2}ok {4}models\.list {2}The catalog is a list/m);
    assertMatch(out, /^messages: +\d+ ok, 0 failed, 0 skipped$/m);
    assertEquals(out.includes(key), false);
    const { out: text } = await run([...args, "--json"], place);
    const { total, totals, results } = JSON.parse(text);
    assertEquals([total.fail, Object.keys(totals)], [0, ["models", "messages"]]);
    assertEquals(results.length, total.pass);
  });
});

Deno.test("conform exits with 1 after a failure, and prints expected and received values", async () => {
  const secret = "sk-answered-back-000000";
  await using server = startUpstream(() => json({ object: "list", data: [{ id: secret }] }));
  await inFolder(async (folder) => {
    const args = ["conform", server.url, "--key", secret, "--model", "m"];
    const { code, out } = await run([...args, "--only", "models"], { folder });
    assertEquals(code, 1);
    assertMatch(out, /^ {2}FAIL {2}models\.list .*\n +expected: .*\n +seen: .*\n +matters: /m);
    assertEquals(out.includes(secret), false);
    assertStringIncludes(out, "[key]");
  });
});

Deno.test("conform reports in one line why it cannot run", async () => {
  await using locked = startUpstream(() => json({ error: { message: "no" } }, { status: 401 }));
  await using empty = startUpstream(() => json({}, { status: 404 }));
  await inFolder(async (folder) => {
    const cases: [string[], number, RegExp][] = [
      [
        [locked.url, "--key", "sk-1234", "--model", "m"],
        1,
        /^Cannot check http:\/\/127\.0\.0\.1:\d+: it refuses the key\n$/,
      ],
      [[empty.url, "--key", "sk-1234", "--model", "m"], 1, /none of the protocols is there\n$/],
      [["http://127.0.0.1:1025", "--key", "sk-1234", "--model", "m"], 1, /^Cannot check .*onnect/],
      [["gateway", "--key", "sk-1234", "--model", "m"], 2, /^Expected an address such as/],
      [["http://u:secret@h", "--key", "sk-1234", "--model", "m"], 2, /^(?!.*secret)Expected an address such as/],
      [[locked.url, "--model", "m"], 2, /^Expected --key or the environment variable SLUICE_CONFORM_KEY/],
      [[locked.url, "--key", "sk-1234"], 2, /^Expected --model/],
      [
        [locked.url, "--key", "sk-1234", "--model", "m", "--only", "chats"],
        2,
        /^Unknown part "chats" of --only; known: models/,
      ],
      [
        [locked.url, "--key", "sk-1234", "--model", "m", "--concurrency", "0"],
        2,
        /^Expected --concurrency from 1 to 32/,
      ],
    ];
    for (const [args, code, form] of cases) {
      const ended = await run(["conform", ...args], { folder });
      assertEquals([ended.code, ended.out], [code, ""], args.join(" "));
      assertMatch(ended.err, form);
    }
  });
});

Deno.test("doctor reports each problem, exits with 1, and never shows a key", async () => {
  const secret = "upstream-key-0123456789";
  await using refusing = startUpstream(() => json({ error: { message: `No: ${secret}` } }, { status: 401 }));
  await inFolder(async (folder) => {
    const upstreams = { one: { vendor: "openai-compatible", base_url: `${refusing.url}/v1`, api_key: { env: "ONE" } } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify({ upstreams }));
    const place = { folder, env: { ONE: secret } };
    const { code, out } = await run(["doctor"], place);
    assertEquals(code, 1);
    assertStringIncludes(out, "error    upstream one: It refuses the key: 401\n         -> Put a valid key");
    assertMatch(out, /\n\n\d+ ok, 1 warning, 1 error\nNext: correct the errors above, then run .* doctor\n$/);
    assertEquals(out.includes(secret), false);
    const { findings, error } = JSON.parse((await run(["doctor", "--json"], place)).out);
    assertEquals([error, findings.filter(({ level }: { level: string }) => level === "error").length], [1, 1]);

    await Deno.writeTextFile(`${folder}/sluice.jsonc`, "{ nothing }");
    const broken = await run(["doctor"], { folder });
    assertEquals(broken.code, 1);
    assertMatch(broken.out, /^error {4}configuration: sluice\.jsonc:1:3/);
    assertEquals((await run(["doctor", "--long"], { folder })).code, 2);
  });
});

Deno.test("doctor sees version and end of a certificate whose authority is trusted", async () => {
  const tls = {
    cert: await Deno.readTextFile(new URL("server.pem", TLS)),
    key: await Deno.readTextFile(new URL("server.key", TLS)),
  };
  await using server = startUpstream(() => json({ object: "list", data: [] }), tls);
  await inFolder(async (folder) => {
    const upstreams = { one: { vendor: "vllm", base_url: `${server.url}/v1` } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify({ upstreams }));
    const { code, out } = await run(["doctor"], { folder, env: { DENO_CERT: new URL("ca.pem", TLS).pathname } });
    assertEquals(code, 0, out);
    assertMatch(out, /upstream one: 127\.0\.0\.1:\d+ can be reached \(\d+ ms\), with TLS/);
  });
});

Deno.test("doctor that had a key for the public URL does not ask for another key", () =>
  inFolder(async (folder) => {
    const { origin, key, kill, ended } = await startWithKey([], { folder }, startReused);
    const { code, out } = await run(["doctor", "--url", origin, "--key", key], { folder });
    assertEquals([code, out.split("\n").at(-2)], [0, `Next: send requests to ${origin}/v1`], out);
    kill("SIGTERM");
    await ended;
  }));
