/** Of this program; kept equal to package.json by a test. */
export const VERSION = '0.1.0';

/** What a released program was built from. */
export interface BuildStamp {
  readonly commit: string;
  /** Of the commit, or $SOURCE_DATE_EPOCH: two builds of one commit are equal. RFC 3339. */
  readonly date: string;
}

/** Put in by the build of a release. */
declare const TRIBUTARY_BUILD: BuildStamp | undefined;

/** Absent where the program runs from its sources. */
export const BUILD: BuildStamp | undefined =
  typeof TRIBUTARY_BUILD === 'undefined' ? undefined : TRIBUTARY_BUILD;
