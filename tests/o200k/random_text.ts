/** Text of many scripts from a seed. */
import type { Random } from "../support/random.ts";

const LANGUAGE: Record<string, string[]> = {
  ascii: chars(0x20, 0x7e),
  words: "the of and tokenizer gateway HTTPServer getUserID iPhone McDonald x86 _private don't We'll I'VE she'd".split(
    " ",
  ),
  contractions: "'s 'S 't 'T 're 'Re 'rE 'RE 've 'VE 'm 'M 'll 'lL 'LL 'd 'D 'x '' ’s 'r 'v 'l".split(" "),
  code: [
    "=>",
    "{",
    "}",
    "();",
    "\n  ",
    "\t",
    "//",
    "/*",
    "*/",
    "::",
    "!==",
    "&&",
    "const ",
    "fn ",
    "#include",
    "</",
    '"',
  ],
  cjk: chars(0x4e00, 0x4e80).concat(chars(0x3040, 0x30ff), [..."的一是不了在人有我他，。！？「」々〇ー"]),
  hangul: chars(0xac00, 0xac60).concat(chars(0x1100, 0x1112), chars(0x1161, 0x1175)),
  arabic: chars(0x0620, 0x065f).concat(chars(0x0660, 0x0669)),
  devanagari: chars(0x0900, 0x097f),
  thai: chars(0x0e01, 0x0e5b),
  european: [..."äöüßéèñçøåæœÄÖÜẞÉÑÇØÅǅǈǋабвгдеёжзАБВГДαβγδΑΒΓΔ"],
  modifiers: chars(0x02b0, 0x02c0).concat(["ª", "º", "ᵃ", "ⁿ"]),
  emoji: ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "🏳️‍🌈", "1️⃣", "\u200d", "\ufe0f", "🧑🏿"],
  marks: chars(0x0300, 0x0320).concat(["e\u0301", "\u20dd", "a\u0308\u0323"]),
  spaces: [" ", "  ", "   ", "\t", "\u00a0", "\u2003", "\u3000", "\u200b", "\ufeff", "\u0085", "\v", "\f"],
  lines: ["\n", "\r\n", "\r", "\n\n", "\n \n", "\u2028", "\u2029", " \n", "\n "],
  digits: chars(0x30, 0x39).concat(["٣", "Ⅷ", "½", "²", "㊿", "𝟘"]),
  punctuation: [..."!?.,;:-_/\\|@#$%^&*()[]{}<>~`\"'", "...", "----", "====", "//", "/\n", "—", "…", "。", "€", "∑"],
  special: ["<|endoftext|>", "<|endofprompt|>", "<|", "|>", "<|im_start|>"],
  astral: ["𝒜", "𐐀", "𐐨", "𠀀", "🜁", "\u{e0001}", "\u{10ffff}", "\u{1f1e6}"],
  lone: ["\ud800", "\udc00", "\udfff"],
};

const SCRIPTS = Object.values(LANGUAGE);

function chars(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i));
}

/** A text of at most `length` UTF-16 code units, of one to three scripts, with runs. */
export function randomText(random: Random, length: number): string {
  const scripts = Array.from({ length: 1 + random.below(3) }, () => SCRIPTS[random.below(SCRIPTS.length)] ?? []);
  const wanted = 1 + random.below(length);
  let text = "";
  while (text.length < wanted) {
    const script = scripts[random.below(scripts.length)] ?? [];
    const part = script[random.below(script.length)] ?? "";
    text += random.below(8) === 0 ? part.repeat(1 + random.below(6)) : part;
    if (random.below(6) === 0) text += " ";
  }
  return text.slice(0, length);
}
