import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { countPdfPages, inflateBudget, pagesBySize } from "../../lib/billing/pdf_pages.ts";
import { runToEnd } from "../../lib/scheduler.ts";
import { workedMs } from "../support/turns.ts";

function base64Of(...parts: (string | Uint8Array)[]): string {
  return Buffer.concat(parts.map((part) => Buffer.from(part))).toString("base64");
}

function pages(...parts: (string | Uint8Array)[]): number {
  return runToEnd(countPdfPages(base64Of(...parts), inflateBudget())).count;
}

/** Number of pauses of a count. */
function pauses(...parts: (string | Uint8Array)[]): number {
  return [...countPdfPages(base64Of(...parts), inflateBudget())].length;
}

/** Page objects as in a file, and their parent node. */
function objects(count: number, filling = ""): string {
  const page = `3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>\n${filling}endobj\n`;
  return `2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count ${count}>>\nendobj\n` + page.repeat(count);
}

function objectStream(text: string): Uint8Array {
  const data = deflateSync(text);
  const head = `7 0 obj\n<</Type /ObjStm /N 100 /First 812 /Length ${data.length} /Filter /FlateDecode>>\nstream\r\n`;
  return Buffer.concat([Buffer.from(head), data, Buffer.from("\nendstream\nendobj\n")]);
}

Deno.test("countPdfPages() counts page objects, including those in compressed object streams", () => {
  assertEquals(pages("%PDF-1.4\n", objects(1)), 1);
  assertEquals(pages("%PDF-1.4\n", objects(12)), 12);
  assertEquals(
    pages("%PDF-1.5\n", objectStream("<</Type/Page/Parent 2 0 R>>".repeat(90)), objectStream("<</A 1>>")),
    90,
  );
  assertEquals(pages("%PDF-1.7\n", objects(3), objectStream("<</Type /Pages /Count 4>> <</Type /Page>>")), 4);
});

Deno.test("countPdfPages() counts each page of a long file once, at any step size", () => {
  // Page objects cross the borders of steps.
  for (const filling of [1_000, 1_021, 40_009]) {
    assertEquals(pages("%PDF-1.4\n", objects(100, "x".repeat(filling))), 100, `${filling}`);
  }
});

/** The objects of a file, numbered from 1: the first is its catalog, the second the root of its pages. */
function tree(...objects: string[]): string {
  return ["<</Type/Catalog/Pages 2 0 R>>", ...objects].map((text, index) => `${index + 1} 0 obj\n${text}\nendobj\n`)
    .join("");
}

/** The same objects in an object stream. */
function packedTree(...objects: string[]): Uint8Array {
  const texts = ["<</Type/Catalog/Pages 2 0 R>>", ...objects];
  let offset = 0;
  const numbers = texts.map((text, index) => `${index + 1} ${(offset += text.length) - text.length}`).join(" ");
  const data = deflateSync(`${numbers} ${texts.join("")}`);
  const dictionary = `<</Type/ObjStm/N ${texts.length}/First ${numbers.length + 1}/Filter/FlateDecode>>`;
  return Buffer.concat([Buffer.from(`9 0 obj\n${dictionary}\nstream\r\n`), data, Buffer.from("\nendstream\n")]);
}

Deno.test("countPdfPages() counts a page as often as the tree repeats it, in any notation", () => {
  const page = "<</Type/Page/Parent 2 0 R>>";
  const node = (...kids: number[]) => `<</Type/Pages/Kids[${kids.map((id) => `${id} 0 R`).join(" ")}]>>`;
  const twice = [node(3, 3), node(4, 4), node(5, 5), node(6, 6), page];
  const cases: [pages: number, objects: string[]][] = [
    [100, [node(...Array(100).fill(3)), page]],
    // Shared children of two nodes, an indirect list of children, escapes and comments.
    [16, twice],
    [6, [node(3, 4), node(5, 5, 5), node(5, 5, 5), page]],
    [3, ["<</Type/Pages/Kids 3 0 R>>", "[4 0 R 4 0 R 4 0 R]", page]],
    [3, ["<</Type/P#61ges/K#69ds[3 0 R 3 0 R 3 0 R]>>", "<</Type/P#61ge>>"]],
    [2, ["<</Kids % [9\n[3 0 R % ]\n3 0 R]>>", page]],
    [10_000, [node(3), node(2, 4), page]],
    // Forms have fields with children, too.
    [1, [node(3), page, "<</FT/Btn/Kids[5 0 R 6 0 R 7 0 R]>>"]],
  ];
  for (const [expected, objects] of cases) {
    assertEquals(pages(tree(...objects)), expected, objects.join());
    assertEquals(pages(packedTree(...objects)), expected, objects.join());
  }
  const escaped = Buffer.from(packedTree(...twice)).toString("latin1").replace("/First", "/F#69rst");
  assertEquals(pages(Buffer.from(escaped, "latin1")), 16);
  // A file that was edited has two versions of a node.
  assertEquals(pages(tree(node(3), page), "2 0 obj\n", node(3, 4), "3 0 obj", page, "4 0 obj", page), 3);
  // Texts that look like catalogs or the start of an array hide no pages.
  const others = Array.from({ length: 65 }, (_, index) => `%/Pages ${100 + index} 0 R\n`).join("");
  assertEquals(pages(others, tree(node(3, 3, 3), page)), 3);
  assertEquals(pages(page, "%9 0 obj[\n", page, page), 3);
  assertEquals(pages(page, "%/Kids[\n", page, page), 3);
  const started = workedMs();
  const repeated = [
    "/Type/ObjStm",
    "/Kids[%]\n",
    "/Kids[",
    "/Kids[1 ",
    "1",
    "1 ",
    "1 0 R ",
    " ",
    "1 0 obj[",
    "/Kids%",
    "%\n",
    "/Kids%\n%\n",
    "/a#41",
    "/#",
  ];
  for (const text of repeated) pages(page, "/Pages 1 0 R/Kids[", text.repeat(1_000_000 / text.length));
  pages(tree(...Array.from({ length: 20_000 }, (_, index) => node(index + 3, index + 3))));
  assert(workedMs() - started < 4_000, `${workedMs() - started}`);
});

Deno.test("countPdfPages() estimates by size if no page is found, and never fails", () => {
  assertEquals([pages(""), pages("x"), pages("x".repeat(65_536)), pages("x".repeat(200_000))], [1, 1, 1, 4]);
  assertEquals(pages("<</Type /ObjStm>>\nstream\n", "no deflate"), 1);
  // One page is visible, and objects are hidden.
  assertEquals(pages("<</Type/Page>>", "<</Type /ObjStm>>\nstream\n", "no deflate".repeat(20_000)), 4);
  // Each would inflate to 14 MB.
  const bomb = objectStream("<</Type/Page>>".repeat(1_000_000));
  assertEquals(pages(bomb), pagesBySize(Buffer.from(bomb).toString("base64")));
  const budget = inflateBudget();
  const bombs = Buffer.concat(Array(20).fill(bomb)).toString("base64");
  assertEquals(runToEnd(countPdfPages(bombs, budget)).count, pagesBySize(bombs));
  assert(budget.bytes <= 0);
  assertEquals(runToEnd(countPdfPages("!!!!", inflateBudget())).count, 1);
});

Deno.test("countPdfPages() says whether a file may have more pages", () => {
  const isPartial = (...parts: (string | Uint8Array)[]) =>
    runToEnd(countPdfPages(base64Of(...parts), inflateBudget())).isPartial;
  assertEquals([isPartial(objects(3)), isPartial(objectStream("<</Type/Page>>"), objectStream("<<>>"))], [
    false,
    false,
  ]);
  // A file without a page, and files with an unreadable stream, a stream that is too long, or too many objects in one.
  assertEquals([isPartial("x"), isPartial(objects(1), "<</Type /ObjStm>>\nstream\n", "no deflate")], [true, true]);
  assertEquals(isPartial(objects(1), objectStream("<</A 1>>".repeat(200_000))), true);
  assertEquals(isPartial(objects(1), packedTree(...Array(9_000).fill("1"))), true);
});

Deno.test("countPdfPages() pauses after a bounded number of objects, and charges for them", () => {
  for (const text of ["/Type/Page", "1 0 obj[1 0 R]", "/Pages 1 0 R", "1 0 R "]) {
    const count = Math.ceil(500_000 / text.length);
    const array = text === "1 0 R " ? "1 0 obj[" : "";
    assert(pauses(array, text.repeat(count)) >= Math.floor(count / 1_000), text);
  }
  // A file of 7 KB that inflates to 70,000 objects.
  const short = objectStream("1 0 obj[1 0 R]".repeat(70_000));
  const budget = inflateBudget();
  runToEnd(countPdfPages(base64Of(short), budget));
  assert(inflateBudget().bytes - budget.bytes >= 70_000 * 64, `${budget.bytes}`);
  // More references than any document has count as the most pages.
  assertEquals(pages("/Pages 1 0 R", "1 0 obj[".padEnd(1_800_000, "2 0 R ")), 10_000);
});
