import { assertEquals, assertStringIncludes } from "@std/assert";
import { startBilled } from "./billed_gateway.ts";
import { inFolder, reuseGateways, reuseProcess, run } from "../support/program.ts";

reuseProcess();
reuseGateways();

Deno.test("usage --by upstream lists requests per upstream, and its CSV matches as an invoice exactly", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    await gateway.ask();
    await gateway.ask();
    await gateway.ask("acme/none");
    await gateway.stop();
    const today = new Date().toISOString().slice(0, 10);
    const from = ["--since", new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)];
    const usage = (...flags: string[]) => run(["usage", "--by", "upstream", ...from, ...flags], { folder });

    const table = (await usage()).out.split("\n");
    assertEquals(table.slice(1), [
      `embedded  echo   ${today}         2       0        0      26           0            0          14       0` +
      "         2        0.0002    0.0001    >-0.0001",
      "TOTAL                               2       0        0      26           0            0          14       0" +
      "         2        0.0002    0.0001    >-0.0001",
      "",
    ]);
    // 26 * 0.00000125 + 14 * 0.00001, and 0.8 times that.
    assertStringIncludes((await usage("--exact")).out, "  0.0001725  0.000138  -0.0000345\n");
    const json = JSON.parse((await usage("--json")).out);
    const { upstream: _, model: __, day: ___, ...figures } = json.lines[0];
    assertEquals([json.by, json.lines.length, figures.upstream_usd], ["upstream", 1, "0.0001725"]);
    assertEquals(json.total, figures);

    const { out: csv } = await usage("--csv", "--upstream", "embedded");
    const unknown = await usage("--upstream", "nobody");
    assertEquals([unknown.code, unknown.out], [2, ""]);
    assertStringIncludes(unknown.err, 'Cannot find upstream "nobody"');
    await Deno.writeTextFile(`${folder}/same.csv`, csv);
    const compare = (file: string, ...flags: string[]) => usage("--upstream", "embedded", "--invoice", file, ...flags);
    const same = await compare("same.csv");
    assertEquals([same.code, same.err], [0, ""]);
    assertStringIncludes(same.out, "No differences found\n");

    // One token more than in the ledger, and a price that the catalog lacks.
    await Deno.writeTextFile(`${folder}/other.csv`, `day,model,prompt,upstream_usd\r\n${today},echo,27,0.0002\r\n`);
    const other = await compare("other.csv");
    assertEquals(other.code, 1);
    assertEquals(other.out.split("\n").slice(0, 5), [
      "DAY         MODEL  WHAT               OURS  INVOICE  DIFFERENCE  WITHIN",
      `${today}  echo   prompt               26       27           1  no`,
      `${today}  echo   upstream_usd  0.0001725   0.0002   0.0000275  no`,
      "",
      "2 of 2 numbers differ by more than the tolerance",
    ]);
    await Deno.writeTextFile(`${folder}/prices.json`, '{"echo": {"prompt": "0.000005", "completion": "0.000005"}}');
    const priced = await compare("other.csv", "--prices", "prices.json", "--tolerance", "4%", "--json");
    const { ok, lines, unverified } = JSON.parse(priced.out);
    assertEquals([priced.code, ok, lines.map(({ ours }: { ours: string }) => ours)], [0, true, ["26", "0.0002"]]);
    assertEquals(unverified, { counted: 0, failed: 0, other_attempts: 0 });
  }));

Deno.test("usage --by upstream reports conflicting flags and unreadable files in one line", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/days.csv`, "day,model,prompt\n2026-10-31,m,1\n");
    const november = ["--since", "2026-11-01", "--until", "2026-12-01"];
    const compared = ["--by", "upstream", "--upstream", "a", "--invoice", "days.csv"];
    const cases: [string[], string][] = [
      [["--by", "model", "--invoice", "days.csv"], 'Cannot use --invoice without "--by upstream"'],
      [["--upstream", "a"], 'Cannot use --upstream without "--by upstream"'],
      [["--by", "upstream", "--tolerance", "1%"], "Cannot use --tolerance without --invoice"],
      [["--by", "upstream", "--invoice", "days.csv"], "Cannot use --invoice without --upstream"],
      [[...compared, "--tolerance", "1"], 'Cannot read the tolerance "1"'],
      [[...compared, "--since", "40d"], "Cannot compare by day: the period must begin and end at midnight"],
      [[...compared, ...november], "Cannot compare: the invoice has the day 2026-10-31"],
      [["--by", "upstream", "--upstream", "a", "--invoice", "none.csv"], 'Cannot read "none.csv"'],
    ];
    for (const [flags, line] of cases) {
      const ended = await run(["usage", ...flags], { folder });
      assertEquals([ended.code, ended.out, ended.err.split("\n").length], [2, "", 2], ended.err);
      assertStringIncludes(ended.err, line);
    }
  }));
