import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../../support/program.ts";
import { eventually } from "../../support/soon.ts";
import { skipInQuick } from "../../support/skip.ts";
import { assertSigned, startReceiver } from "../../support/webhook_receiver.ts";
import { type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { ask, configWith, counted, envFor, SECRET, webhooksOf } from "./alerted.ts";

reuseProcess();
reuseGateways();

const test = skipInQuick("Alerts of whole processes") ? Deno.test.ignore : Deno.test;

test("budget thresholds are reported once, signed, across a restart, and 100 % at a refusal", () =>
  inFolder(async (folder) => {
    await using receiver = startReceiver();
    await using upstream = startUpstream(() => counted());
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configWith(upstream)));
    const place = { folder, env: envFor(receiver) };
    const first = await startReused(["serve"], place);
    assertEquals([await ask(first), await ask(first)], [200, 200]);
    const [half] = await webhooksOf(receiver, "budget.threshold", 1);
    if (half === undefined) throw new Error("There is no webhook");
    assertSigned(half, SECRET);
    assertMatch(half.body.id, /^evt_[0-9a-f]{24}$/);
    assertEquals([half.body.text, half.body.data], [
      'Key "client" has reached 50% of its budget: 2 of 4 USD in total',
      {
        scope: "key",
        id: "config:client",
        name: "client",
        user: null,
        group: "team",
        percent: 50,
        budget_usd: "4",
        spent_usd: "2",
        period: "total",
        period_start: null,
        resets_at: null,
      },
    ]);
    assertEquals([await ask(first), await ask(first)], [200, 200]);
    await webhooksOf(receiver, "budget.threshold", 2);
    first.kill("SIGTERM");
    const ended = await first.ended;
    assertEquals(ended.code, 0);
    assertStringIncludes(ended.err, '"event":"alert_delivered"');
    for (const secret of [SECRET, "long-secret-path"]) assertEquals(ended.err.includes(secret), false);

    const second = await startReused(["serve"], place);
    assertEquals(await ask(second), 429);
    const budget = (await run(["keys", "add", "fresh", "--group", "team", "--budget", "0.5"], place)).out.trim();
    const refused = await fetch(`${second.origin}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${budget}` },
      body: JSON.stringify({
        model: "acme/one",
        max_completion_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    assertEquals([refused.status, (await refused.json()).error.code], [429, "insufficient_quota"]);
    const all = await webhooksOf(receiver, "budget.threshold", 3);
    assertEquals(all.map(({ body: { data } }) => [data.name, data.percent, data.spent_usd]), [
      ["client", 50, "2"],
      ["client", 100, "4"],
      ["fresh", 100, "0"],
    ]);
    assertStringIncludes(
      all[2]?.body.text ?? "",
      'Key "fresh": a request was refused because it may cost more than is left of its budget; spent 0 of ',
    );
    second.kill("SIGTERM");
    assertEquals((await second.ended).code, 0);
    assertEquals(receiver.received.length, 3);
  }));

test("upstreams that fail, recover or refuse the key are reported, for selected events only", () =>
  inFolder(async (folder) => {
    await using receiver = startReceiver();
    let answer: ScriptedAnswer = { status: 500, body: '{"error":{"message":"broken"}}' };
    await using upstream = startUpstream(() => answer);
    const alerts = {
      webhook: { env: "ALERT_WEBHOOK" },
      format: "slack",
      events: ["upstream.down", "upstream.up", "upstream.key_refused"],
    };
    const config = configWith(upstream, {
      alerts,
      routing: { attempts: 1, breaker: { consecutive_failures: 2, open_ms: 100 } },
    });
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const gateway = await startReused(["serve"], { folder, env: envFor(receiver) });
    const texts = () => receiver.received.map(({ text }) => JSON.parse(text));
    const sent = (...expected: string[]) =>
      eventually(() => Promise.resolve(assertEquals(texts(), expected.map((text) => ({ text: `Sluice: ${text}` })))));
    await ask(gateway);
    await ask(gateway);
    const down =
      'Upstream "one" with model "m" for requests of key "client" is down: requests fail, so the gateway pauses ' +
      'requests to it. Last failure: status 500, "broken"';
    await sent(down);
    answer = counted();
    await eventually(async () => assertEquals(await ask(gateway), 200));
    const up = 'Upstream "one" with model "m" for requests of key "client" is up again';
    await sent(down, up);
    answer = { status: 403, body: '{"error":{"message":"no access"}}' };
    await ask(gateway);
    const right = 'Upstream "one" answered 403 for model "m": the gateway\'s key may lack a permission';
    await sent(down, up, right);
    answer = { status: 401, body: '{"error":{"message":"wrong key"}}' };
    // A probe, which runs at most once per interval, discovers it.
    await eventually(async () => assertEquals(await ask(gateway), 503));
    const key = 'Upstream "one" refuses the gateway\'s key: it gets no requests until it accepts one';
    await sent(down, up, right, key);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    assertEquals(texts().length, 4);
  }));

Deno.test("alerts test sends a signed alert, and prints the result", () =>
  inFolder(async (folder) => {
    await using receiver = startReceiver();
    const place = { folder, env: envFor(receiver) };
    const write = (parts: Parameters<typeof configWith>[1]) =>
      Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configWith({ url: "http://127.0.0.1:1" }, parts)));
    await write({});
    const good = await run(["alerts", "test"], place);
    assertEquals([good.code, good.err], [0, ""]);
    assertMatch(good.out, /^The receiver accepted the test alert evt_test_\d+ with status 204\n$/);
    const [webhook] = receiver.received;
    if (webhook === undefined) throw new Error("There is no webhook");
    assertSigned(webhook, SECRET);
    assertEquals(webhook.body.type, "test");

    receiver.answer = () => new Response(null, { status: 302, headers: { location: receiver.url } });
    const moved = await run(["alerts", "test"], place);
    assertEquals([moved.code, moved.out, receiver.received.length], [1, "", 2]);
    assertMatch(moved.err, /^The receiver refused the test alert evt_test_\d+ with status 302\n$/);

    await write({ private_networks: [] });
    const closed = await run(["alerts", "test"], place);
    assertEquals([closed.code, closed.out, receiver.received.length], [1, "", 2]);
    assertMatch(
      closed.err,
      /^Cannot reach the receiver: .*a private address that "private_networks" does not have\n$/,
    );

    await Deno.writeTextFile(`${folder}/sluice.jsonc`, "{}");
    const none = await run(["alerts", "test"], place);
    assertEquals([none.code, none.err], [1, 'There is no webhook: add "alerts" to the configuration\n']);
  }));

Deno.test("alerts need an address and a key, and their secrets appear nowhere", () =>
  inFolder(async (folder) => {
    await using receiver = startReceiver();
    const config = configWith({ url: "http://127.0.0.1:1" });
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const env = envFor(receiver);
    assertEquals((await run(["check"], { folder, env })).code, 0);
    // Commands that send nothing need no secrets.
    assertEquals((await run(["keys", "add", "one"], { folder })).code, 0);
    const cases: [env: Record<string, string>, problem: string][] = [
      [{ ALERT_WEBHOOK: "" }, 'alerts.webhook.env: The environment variable "ALERT_WEBHOOK" is empty'],
      [
        { ALERT_WEBHOOK: "hooks.example.com/secret-of-mine" },
        'alerts.webhook.env: The environment variable "ALERT_WEBHOOK" must hold an http or https address without a user',
      ],
      [
        { ALERT_WEBHOOK: "https://user:secret-of-mine@hooks.example.com" },
        'alerts.webhook.env: The environment variable "ALERT_WEBHOOK" must hold an http or https address without a user',
      ],
      [
        { ALERT_SECRET: "secret-of-mine" },
        'alerts.secret.env: The environment variable "ALERT_SECRET" must hold 16 to 256 visible ASCII characters, no spaces',
      ],
    ];
    for (const [change, problem] of cases) {
      const { code, err } = await run(["check"], { folder, env: { ...env, ...change } });
      assertEquals([code, err.replace(/^sluice\.jsonc:1:\d+: /, "")], [1, `${problem}\n`]);
    }
    const unsigned = { ...config, alerts: { webhook: { env: "ALERT_WEBHOOK" } } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(unsigned));
    const { code, err } = await run(["check"], { folder, env });
    assertEquals([code, err.replace(/^sluice\.jsonc:1:\d+: /, "")], [
      1,
      'alerts.secret: Missing: alerts in the format "sluice" must be signed\n',
    ]);
  }));
