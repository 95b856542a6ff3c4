//! The examples of each command, which `--help` shows and `-h` does not.

pub(super) const IBIFS: &str = "\
Examples:
  ibifs quickstart                        a demonstration to explore
  ibifs init store --host archive.example.org
  ibifs mount store mnt
  ibifs mint mnt --edition-of mnt/example.org/archive/2026/11.22.10.15
  ibifs fsck --help                       details of one command

Exit status:
  0  done
  1  failed, or found something wrong
  2  usage error
  3  not found: an item, relation, store or mount
  4  refused
  5  in use
  6  FUSE cannot be used

With --json a command prints JSON, as ibifs-json(7) describes it, and so does an error.
Each command has a manual page: ibifs-mount(1), ... The mounted tree is in ibifs-tree(7).";

pub(super) const INIT: &str = "\
Examples:
  ibifs init store --host archive.example.org
  ibifs init --adopt /srv/urlib --host archive.example.org --port 1905";

pub(super) const MOUNT: &str = "\
Examples:
  ibifs mount store mnt
  ibifs mount store mnt -o ro,lang=pt
  ibifs mount https://archive.example.org mnt
  ibifs mount --foreground store mnt";

pub(super) const WORLD: &str = "\
Examples:
  ibifs world /mnt/world --resolver https://urlib.net
  ibifs world mnt --archive https://archive.example.org --cache-size 50G
  ibifs world pin mnt 8JMKD3MGP8W/34PGRBS
  ibifs world status mnt --json";

pub(super) const UMOUNT: &str = "\
Example:
  ibifs umount mnt";

pub(super) const STATUS: &str = "\
Examples:
  ibifs status                            every store that is mounted
  ibifs status store
  ibifs status store --json | jq '.[0].items'";

pub(super) const MINT: &str = "\
Examples:
  ibifs mint mnt
  ibifs mint mnt --edition-of mnt/example.org/archive/2026/11.22.10.15
  ibifs mint mnt --translation-of 8JMKD3MGP8W/34PGRBS --lang pt-BR
  ibifs mint mnt --from ~/measurements";

pub(super) const WORK: &str = "\
Examples:
  ibifs work mnt/example.org/archive/2026/11.22.10.15 -- make -C mnt/example.org/archive/2026/11.22.10.15/doc
  ibifs work 8JMKD3MGP8W/34PGRBS
  ibifs work mnt -- rsync -aHAX collection/ mnt/";

pub(super) const SHOW: &str = "\
Examples:
  ibifs show mnt/example.org/archive/2026/11.22.10.15
  ibifs show 'mnt/example.org/archive/2026/11.22.10.15!'
  ibifs show 8JMKD3MGP8W/34PGRBS --store store";

pub(super) const CITE: &str = "\
Examples:
  ibifs cite mnt/example.org/archive/2026/11.22.10.15
  ibifs cite 'mnt/example.org/archive/2026/11.22.10.15!' --style abnt --language pt-BR
  ibifs cite 8JMKD3MGP8W/34PGRBS --store store --style ieee";

pub(super) const HISTORY: &str = "\
Examples:
  ibifs history mnt/example.org/archive/2026/11.22.10.15
  ibifs history mnt --since 2026-11-01 --type withdrawn
  ibifs history 8JMKD3MGP8W/34PGRBS --store store --json";

pub(super) const PROVE: &str = "\
Examples:
  ibifs prove mnt/example.org/archive/2026/11.22.10.15 | tee thesis.tlog-proof
  ibifs prove 8JMKD3MGP8W/34PGRBS --store store | tee map.tlog-proof";

pub(super) const COSIGN: &str = "\
Examples:
  ibifs cosign store
  ibifs cosign store --tsa https://tsa.example.org
  ibifs cosign mnt --json";

pub(super) const VERIFY: &str = "\
Examples:
  ibifs verify thesis.tlog-proof --policy archives.policy
  ibifs verify thesis.tlog-proof --store store";

pub(super) const FIND: &str = "\
Examples:
  ibifs find rainfall --store store
  ibifs find --creator banon --year 2005-2009
  ibifs find 'title:\"sea level\"' hydro* -- -map
  ibifs find rainfall --json | jq -r '.[].title'";

pub(super) const PUBLISH: &str = "\
Examples:
  ibifs publish mnt/example.org/archive/2026/11.22.10.15
  ibifs publish 8JMKD3MGP8W/34PGRBS --store store";

pub(super) const SEAL: &str = "\
Examples:
  ibifs seal mnt/example.org/archive/2026/11.22.10.15
  ibifs seal mnt/example.org/archive/2026/11.22.10.15 --after 30d
  ibifs seal 8JMKD3MGP8W/34PGRBS --store store";

pub(super) const UNSEAL: &str = "\
Examples:
  ibifs unseal mnt/example.org/archive/2026/11.22.10.15 --reason typo";
pub(super) const WITHDRAW: &str = "\
Examples:
  ibifs withdraw mnt/example.org/archive/2026/11.22.10.15 --reason wrong
  ibifs withdraw 8JMKD3MGP8W/34PGRBS --reason duplicate --store store";

pub(super) const RESTORE: &str = "\
Examples:
  ibifs restore mnt/example.org/archive/2026/11.22.10.15
  ibifs restore mnt/example.org/archive/2026/11.22.10.15 --from /backup/generations";

pub(super) const REMOVE: &str = "\
Examples:
  ibifs remove mnt/example.org/archive/2026/11.22.10.15 --reason duplicate
  ibifs remove 8JMKD3MGP8W/34PGRBS --store store";

pub(super) const WATCH: &str = "\
Examples:
  ibifs watch mnt --from now
  ibifs watch store --once | jq -r 'select(.event == \"removed\").rep'";

pub(super) const RELATE: &str = "\
Examples:
  ibifs relate mnt/example.org/archive/2026/11.22.10.15 --next-edition 8JMKD3MGP8W/34PGRBS
  ibifs relate 8JMKD3MGP8W/34PGRBS --translation 8JMKD3MGP8W/34PGRBT --lang pt --store store";

pub(super) const UNRELATE: &str = "\
Examples:
  ibifs unrelate mnt/example.org/archive/2026/11.22.10.15 --next-edition
  ibifs unrelate 8JMKD3MGP8W/34PGRBS --translation --lang pt --store store";

pub(super) const LS: &str = "\
Examples:
  ibifs ls store
  ibifs ls store example.org/archive/2026 --state original
  ibifs ls store --json | jq -r '.[].rep'";

pub(super) const REINDEX: &str = "\
Example:
  ibifs reindex store";

pub(super) const FSCK: &str = "\
Examples:
  ibifs fsck store
  ibifs fsck --dry-run store
  ibifs fsck --repair store";

pub(super) const SCRUB: &str = "\
Examples:
  ibifs scrub store
  ibifs scrub --rate 50M store
  ibifs scrub store --accept 8JMKD3MGP8W/34PGRBS";

pub(super) const COPIES: &str = "\
Examples:
  ibifs copies store
  ibifs copies store 8JMKD3MGP8W/34PGRBS
  ibifs copies store --short";

pub(super) const REPORT: &str = "\
Examples:
  ibifs report store
  ibifs report store --ndsa --json";

pub(super) const REPAIR: &str = "\
Examples:
  ibifs repair store --all --from /media/disk/store.backup
  ibifs repair store 8JMKD3MGP8W/34PGRBS --from https://archive.example.net";

pub(super) const AUDIT: &str = "\
Examples:
  ibifs audit store --with /mnt/other/store
  ibifs audit store --with /media/disk/store.backup --minutes 60
  ibifs audit store 8JMKD3MGP8W/34PGRBS --with /mnt/other/store
  ibifs audit store --with https://archive.example.net --minutes 60";

pub(super) const BACKUP: &str = "\
Examples:
  ibifs backup store /media/disk/store.backup
  ibifs backup store /media/disk/generations --keep 7d,4w,12m,3y
  ibifs backup --list /media/disk/generations
  ibifs backup --drill /media/disk/generations";

pub(super) const EXPORT: &str = "\
Examples:
  ibifs export --bagit mnt/example.org/archive/2026/11.22.10.15 bags
  ibifs export --ocfl 8JMKD3MGP8W/34PGRBS root --store store";

pub(super) const IMPORT: &str = "\
Examples:
  ibifs import mnt bags
  ibifs import store root --dry-run
  ibifs import store relations.csv        relations and other data
  ibifs import --mint mnt thesis.zip";

pub(super) const COPY: &str = "\
Examples:
  ibifs copy mnt/example.org/archive/2026/11.22.10.15 other
  ibifs copy --store store --prefix example.org/archive --year 2026 other
  ibifs copy --store store --state original http://archive.example.net/8JMKD3MGP8W/34PGRBS --token-file token
  ibifs copy --from https://archive.example.org 8JMKD3MGP8W/34PGRBS store";

pub(super) const TRANSFER: &str = "\
Examples:
  ibifs transfer mnt/example.org/archive/2026/11.22.10.15 other
  ibifs transfer --store store --pending other    transfers that are not finished";

pub(super) const CLAIM: &str = "\
Examples:
  ibifs claim mnt/example.org/archive/2026/11.22.10.15 --from other
  ibifs claim 8JMKD3MGP8W/34PGRBS --from http://archive.example.net/8JMKD3MGP8W/34PGRBR";

pub(super) const SERVE: &str = "\
Examples:
  ibifs serve store
  ibifs serve store --listen 0.0.0.0:80 --address archive.example.org
  ibifs serve store --resolver http://urlib.example.net --registration-key-file key";

pub(super) const RESOLVER: &str = "\
Examples:
  ibifs resolver --db resolver.sqlite3 --listen 0.0.0.0:80 --address urlib.example.net
  ibifs resolver register --db resolver.sqlite3 8JMKD3MGP8W/34PGRBS
  ibifs resolver list --db resolver.sqlite3
  ibifs resolver key --db resolver.sqlite3";

pub(super) const ID: &str = "\
Examples:
  ibifs id explain 8JMKD3MGP8W/34PGRBS
  ibifs id check sid.inpe.br/mtc-m18@80/2009/02.16.17.46";

pub(super) const UPN: &str = "\
Examples:
  ibifs upn store
  ibifs upn store LCETB2 dpi.inpe.br/sbsr@80
  ibifs upn store --remove LCETB2";

pub(super) const QUICKSTART: &str = "\
Examples:
  ibifs quickstart
  ibifs quickstart /tmp/demo";

pub(super) const COMPLETIONS: &str = "\
Examples:
  source <(ibifs completions bash)        in ~/.bashrc
  source <(ibifs completions zsh)         in ~/.zshrc, after compinit
  ibifs completions fish | source         in ~/.config/fish/config.fish";
