/** Checks that comments and test titles do without a few words of prose that hide their subject. One line per violation. */
import type { SourceFile } from "./sources.ts";

/** Each of them has a plain replacement: the name of the party, "no client", "happens to". */
const AVOIDED = /\b(?:who(?:m)?ever|nobody|somebody else|thereof|in earnest|bec(?:a|o)mes? of|what there is)\b/i;

/** A comment that begins a line or follows code, or a line within a block comment. */
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*(?=[ /])).*|[;,{})\]] \/\/ .*/;

/** The title of a test, where it is on the line of its call. */
const TITLE = /\bDeno\.test\((?:\{ name: )?(["`]).*?\1/;

export function checkWording(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const prose = (COMMENT.exec(line)?.[0] ?? TITLE.exec(line)?.[0] ?? "").replaceAll(/`[^` ]*`/g, "");
      const word = AVOIDED.exec(prose)?.[0];
      return word === undefined ? [] : [`${path}:${index + 1}: says "${word}"; name the subject instead`];
    })
  );
}
