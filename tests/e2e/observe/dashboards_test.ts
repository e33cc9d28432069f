/** The alerts and the dashboard of `deploy/`: every metric and label that they use is one of a running gateway. */
import { assert, assertEquals } from "@std/assert";
import { blocksOf, documentText } from "../../support/documents.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { findProgram, skipIf } from "../../support/skip.ts";
import { prompt } from "../../upstream/replies.ts";
import { readExposition } from "./exposition.ts";

const RULES = "deploy/prometheus/rules.yml";
const DASHBOARD = "deploy/grafana/sluice.json";
const PROMTOOL = findProgram("promtool");

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

/** The alerts of the rules: name and text, which has the expression. */
async function readRules(): Promise<{ alert: string; text: string }[]> {
  const [, ...rules] = (await Deno.readTextFile(RULES)).split("- alert: ");
  return rules.map((text) => ({ alert: text.slice(0, text.indexOf("\n")), text: text.split("annotations:")[0] ?? "" }));
}

async function readPanels(): Promise<Dashboard["panels"]> {
  return (JSON.parse(await Deno.readTextFile(DASHBOARD)) as Dashboard).panels;
}

/** Names of the metrics in an expression, without the endings of histograms' series. */
function metricsIn(expression: string): string[] {
  return [...expression.matchAll(/\b(?:sluice|process)_[a-z_]+/g)].map(([name]) =>
    name.replace(/_(?:bucket|sum|count)$/, "")
  );
}

Deno.test("the rules and the dashboard use metrics that a running gateway has", async () => {
  await using gateway = startGateway(oneModel("chat", "http://127.0.0.1:1"));
  await (await gateway.ask("chat", prompt("chat"))).text();
  const families = readExposition(await (await fetch(`${gateway.url}/metrics`)).text());
  const rules = await readRules();
  const panels = await readPanels();
  assert(rules.length >= 10 && panels.length >= 10);
  const expressions = [
    ...rules.map(({ text }) => text),
    ...panels.flatMap(({ targets }) => targets.map((t) => t.expr)),
  ];
  for (const expression of expressions) {
    const names = metricsIn(expression);
    assert(names.length > 0, expression);
    assertEquals(names.filter((name) => !families.has(name)), [], expression);
  }
});

const PAGE = "docs/how-to/monitoring.md";

Deno.test("the documentation names every alert", async () => {
  const text = documentText(PAGE);
  assertEquals((await readRules()).map(({ alert }) => alert).filter((alert) => !text.includes(`\`${alert}\``)), []);
});

Deno.test({
  name: "promtool accepts the rules, and they fire at one request per minute",
  ignore: skipIf(PROMTOOL === undefined, "promtool is not installed: package prometheus"),
  async fn() {
    for (const args of [["check", "rules", RULES], ["test", "rules", "tests/e2e/observe/thin_traffic_rules.yml"]]) {
      const { success, stdout, stderr } = await new Deno.Command(PROMTOOL ?? "", { args }).output();
      assert(success, new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr));
    }
  },
});

Deno.test({
  name: "promtool accepts the documented configuration of Prometheus, with its rules",
  ignore: skipIf(PROMTOOL === undefined, "promtool is not installed: package prometheus"),
  async fn() {
    const [config = ""] = blocksOf(PAGE, "yaml");
    const file = await Deno.makeTempFile({ suffix: ".yml" });
    try {
      const text = config.replace("/etc/prometheus/sluice/rules.yml", `${Deno.cwd()}/${RULES}`)
        .replace("/etc/prometheus/sluice-admin-key", file);
      await Deno.writeTextFile(file, text);
      const { success, stdout, stderr } = await new Deno.Command(PROMTOOL ?? "", { args: ["check", "config", file] })
        .output();
      const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert(success && output.includes("rules found"), output);
    } finally {
      await Deno.remove(file);
    }
  },
});
