// The live page's texts about a run before its script runs, from that script's own modules:
// node texts.mjs FOLDER
// @ts-check
import { rowOf as checkpointRow, useOf } from "./checkpoints.js";
import { about, countedBy, done, joinHeading, keyFigures, lengthInWords } from "#assets/live/figures.js";
import { hasTraffic, ranked, rowOf } from "./people.js";
import { PICTURES, drawingInWords, placeInWords, whenInWords } from "./pictures.js";
import { describe } from "#assets/live/status.js";
import { addressOf, answer, readRun } from "../../pieces/run_files.mjs";

const MOST_ROWS = 100; // contributors and checkpoints in the page itself; the script shows all

const data = await readRun(process.argv[2]);
const { card, name } = data;
const finished = Boolean(card.finished);
const people = ranked(data.peers);
const { share, words } = done(data);
const use = useOf(data, `docs/live/${name}`);

answer({
  name,
  title: card.title,
  state: finished ? "finished" : "running",
  sentence: finished ? describe(data, NaN).sentence : "Running when this page was built",
  left: lengthInWords(data),
  ...keyFigures(data),
  share,
  progress_words: words,
  contributors: people.slice(0, MOST_ROWS).map((person) => ({ id: person.id, ...rowOf(person, finished) })),
  has_traffic: hasTraffic(people),
  checkpoints: data.checkpoints.slice(-MOST_ROWS).reverse().map((checkpoint) => ({
    ...checkpointRow(checkpoint),
    sha256: checkpoint.sha256,
    file: checkpoint.address ? "kept" : "not kept",
  })),
  pictures_heading: PICTURES.heading,
  pictures_lead: PICTURES.lead,
  ...pictures(),
  use_words: use.words,
  use_command: use.command,
  about: about(card, name),
  join: card.join,
  join_heading: joinHeading(card),
  counted_by: countedBy(card),
});

/** The newest pictures, one row per caption; addresses are relative to the live page. */
function pictures() {
  const { samples: { prompts, checkpoints: drawn }, checkpoints, folder } = data;
  const newest = drawn.at(-1);
  if (!newest) return { pictures: [], pictures_when: "" };
  const loss = checkpoints.findLast(({ step }) => step === newest.step)?.loss;
  return {
    pictures: newest.images.map((paths, row) => ({
      prompt: prompts[row] ?? "",
      images: paths.map((path, index) => ({
        address: addressOf(path, folder),
        words: drawingInWords(prompts[row] ?? "", index, paths.length, newest.step),
      })),
    })),
    pictures_when: `${whenInWords(newest, loss)}. ${placeInWords(drawn.length - 1, drawn.length)}`,
  };
}
