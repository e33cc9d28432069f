/** Reads which edits the words of an instruction ask for. */
import { type Tint, tintsIn } from "./color.ts";
import { readWords } from "./compose.ts";

/** One edit of an image. */
export type Edit =
  | { type: "gray" | "sepia" | "invert" | "blur" | "sharpen" | "pixelate" | "posterize" | "vignette" | "round" }
  | { type: "tint"; tint: Tint }
  | { type: "tone"; brightness?: number; contrast?: number; saturation?: number; warmth?: number }
  | { type: "border"; tint?: Tint }
  | { type: "text"; text: string };

/** The requested change of orientation, which comes first, and the edits in the order in which they are applied. */
export interface Instruction {
  /** The turn or flip as an EXIF orientation; 1 if there is none. */
  orientation: number;
  edits: Edit[];
}

/** Longest text that is written on an image, in UTF-16 code units. */
const MAX_TEXT_UNITS = 200;

/** Edits without parameters, and the words that ask for them. */
const SIMPLE_EDITS: readonly [Exclude<Edit, { tint?: Tint } | { text: string } | { type: "tone" }>["type"], RegExp][] =
  [
    ["gray", /\b(gr[ae]y ?scale|black[ -]and[ -]white|b&w|monochrome|desaturate|schwarzwei(ß|ss))/],
    ["sepia", /\b(sepia|vintage|old photo|antique|nostalgi)/],
    ["invert", /\b(invert|negative|inverse)/],
    ["posterize", /\b(poster|cartoon|comic|flat colou?rs)/],
    ["pixelate", /\b(pixel|mosaic|8-bit|retro game|censor)/],
    ["blur", /\b(blur|soften|out of focus|bokeh|smooth|unscharf)/],
    ["sharpen", /\b(sharpen|sharper|crisp|more detail)/],
    ["vignette", /\b(vignette|dark(en)? (the )?(edges|corners))/],
    ["round", /\b(round(ed)? corners|circle crop|in a circle)/],
  ];

/** Words that ask for changes of tone. */
const TONES: readonly [RegExp, Omit<Extract<Edit, { type: "tone" }>, "type">][] = [
  [/\b(bright|lighten|lighter|expose|daylight)/, { brightness: 0.4 }],
  [/\b(darken|darker|dim|at night|nighttime)/, { brightness: -0.45 }],
  [/\b(more contrast|contrast|dramatic|punch)/, { contrast: 1.4 }],
  [/\b(vivid|vibrant|saturate|colou?rful|pop)/, { saturation: 1.7 }],
  [/\b(muted|faded?|pale|washed)/, { saturation: 0.5, contrast: 0.85 }],
  [/\b(warm|sunset|golden hour|cozy|autumn)/, { warmth: 0.8 }],
  [/\b(cool|cold|winter|icy)/, { warmth: -0.8 }],
];

/** A colour belongs to the border if it is named near this word, with no `BREAK` between them. */
const BORDER = /\b(border|frame|framed|rahmen)\b/;
const BREAK = /[,.;]|\b(?:and|with|then|und|mit)\b/;

/** Reads an instruction. If it asks for no known edit, the image gets a vignette and the instruction as a caption. */
export function readInstruction(prompt: string): Instruction {
  const text = prompt.slice(0, 4000);
  const quoted = [...text.matchAll(/["“”«»„]([^"“”«»„]{1,200})["“”«»„]|(?:^|\s)['‘]([^'’]{1,200})['’](?=[\s.,!?]|$)/g)]
    .map(([, double, single]) => (double ?? single ?? "").trim()).filter((quote) => quote !== "");
  // Quoted text is written on the image and contains no edits.
  let plain = text.toLowerCase();
  for (const words of quoted) plain = plain.replace(words.toLowerCase(), " ");
  const edits: Edit[] = [];
  for (const [type, pattern] of SIMPLE_EDITS) if (pattern.test(plain)) edits.push({ type });
  for (const [pattern, values] of TONES) if (pattern.test(plain)) edits.push({ type: "tone", ...values });
  const border = BORDER.exec(plain);
  const before = border === null ? "" : plain.slice(0, border.index).split(BREAK).at(-1) ?? "";
  const after = border === null ? "" : plain.slice(border.index).split(BREAK)[0] ?? "";
  const borderTint = border === null ? undefined : tintsIn(readWords(`${before} ${after}`))[0];
  const isGray = edits.some(({ type }) => type === "gray");
  const tint = tintsIn(readWords(plain)).find((tint) => tint !== borderTint && !(isGray && tint.chroma < 0.02));
  if (tint !== undefined) edits.unshift({ type: "tint", tint });
  const orientation = readOrientation(plain);
  const caption = quoted.join(" ").slice(0, MAX_TEXT_UNITS);
  if (caption !== "") edits.push({ type: "text", text: caption });
  else if (
    edits.length === 0 && border === null && orientation === 1 && !/\b(resize|scale|crop|enlarge|shrink)/.test(plain)
  ) {
    edits.push({ type: "tone", saturation: 1.25, contrast: 1.08 }, { type: "vignette" }, {
      type: "text",
      text: text.slice(0, MAX_TEXT_UNITS),
    });
  }
  // The border comes last, so that nothing is painted over it.
  if (border !== null) edits.push({ type: "border", ...(borderTint !== undefined && { tint: borderTint }) });
  return { orientation, edits };
}

/** Reads turns and flips, as an EXIF orientation. A flip excludes a turn. */
function readOrientation(plain: string): number {
  if (/\b(flip|mirror|spiegel)/.test(plain)) return /\b(vertical|upside)/.test(plain) ? 4 : 2;
  if (/\b(180|upside[ -]down)/.test(plain)) return 3;
  if (!/\b(rotat|turn (it|the)|drehe?)/.test(plain)) return 1;
  return /\b(counter|anti|left|270)/.test(plain) ? 8 : 6;
}
