import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { countPdfPages, inflateBudget, pagesBySize } from "../../lib/billing/pdf_pages.ts";
import { runToEnd } from "../../lib/scheduler.ts";
import { workedMs } from "../support/turns.ts";

function pages(...parts: (string | Uint8Array)[]): number {
  return runToEnd(
    countPdfPages(Buffer.concat(parts.map((part) => Buffer.from(part))).toString("base64"), inflateBudget()),
  );
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

Deno.test("countPdfPages() counts a page as often as the tree repeats it, and in linear time", () => {
  const page = "3 0 obj\n<</Type/Page/Parent 2 0 R>>\nendobj\n";
  const node = (kids: string) => `<</Type/Pages/Kids[${kids}]/Count 1>>\n`;
  assertEquals(pages(page, node("3 0 R ".repeat(100))), 100);
  assertEquals(pages(page, node("3 0 R % 9\n03 00000\nR 4 0 R")), 2);
  assertEquals(pages(page, node("2 0 R ".repeat(10)), objectStream(node("3 0 R ".repeat(20)))), 200);
  // A file that was edited has two versions of a node, and forms have fields with children.
  assertEquals(pages(page, node("3 0 R"), node("3 0 R 4 0 R"), "<</FT/Btn/Kids[5 0 R 6 0 R 7 0 R]>>"), 1);
  const started = workedMs();
  for (const text of ["/Kids[", "/Kids[1 ", "1", "1 ", "1 0 R ", " "]) {
    pages(page, "/Kids[", text.repeat(2_000_000 / text.length));
  }
  assert(workedMs() - started < 3_000);
});

Deno.test("countPdfPages() estimates by size if no page is found, and never fails", () => {
  assertEquals([pages(""), pages("x"), pages("x".repeat(65_536)), pages("x".repeat(200_000))], [1, 1, 1, 4]);
  assertEquals(pages("<</Type /ObjStm>>\nstream\n", "no deflate"), 1);
  // Inflated each would be 14 MB.
  const bomb = objectStream("<</Type/Page>>".repeat(1_000_000));
  assertEquals(pages(bomb), pagesBySize(Buffer.from(bomb).toString("base64")));
  const budget = inflateBudget();
  const bombs = Buffer.concat(Array(20).fill(bomb)).toString("base64");
  assertEquals(runToEnd(countPdfPages(bombs, budget)), pagesBySize(bombs));
  assert(budget.bytes <= 0);
  assertEquals(runToEnd(countPdfPages("!!!!", inflateBudget())), 1);
});
