-- What MLflow 3.18 adds to the schema of MLflow 3.17.2.
CREATE TABLE skills (
  workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
  organization VARCHAR(64) DEFAULT '' NOT NULL,
  name VARCHAR(128) NOT NULL,
  description TEXT,
  icons JSON,
  search_text TEXT,
  created_by VARCHAR(256),
  last_updated_by VARCHAR(256),
  created_at BIGINT NOT NULL,
  last_updated_at BIGINT NOT NULL,
  CONSTRAINT skills_pk PRIMARY KEY (workspace, organization, name)
);
CREATE TABLE skill_versions (
  workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
  organization VARCHAR(64) DEFAULT '' NOT NULL,
  name VARCHAR(128) NOT NULL,
  version INTEGER NOT NULL,
  source_type VARCHAR(20),
  source VARCHAR(2048),
  ref VARCHAR(2048),
  subpath VARCHAR(2048),
  digest VARCHAR(64),
  status VARCHAR(20) DEFAULT 'active' NOT NULL,
  created_by VARCHAR(256),
  last_updated_by VARCHAR(256),
  created_at BIGINT NOT NULL,
  last_updated_at BIGINT NOT NULL,
  CONSTRAINT skill_versions_skill_fkey FOREIGN KEY(workspace, organization, name) REFERENCES skills (workspace, organization, name) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT skill_versions_pk PRIMARY KEY (workspace, organization, name, version)
);
CREATE TABLE skill_tags (
  workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
  organization VARCHAR(64) DEFAULT '' NOT NULL,
  name VARCHAR(128) NOT NULL,
  "key" VARCHAR(250) NOT NULL,
  value TEXT,
  CONSTRAINT skill_tags_skill_fkey FOREIGN KEY(workspace, organization, name) REFERENCES skills (workspace, organization, name) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT skill_tags_pk PRIMARY KEY (workspace, organization, name, "key")
);
CREATE TABLE skill_version_tags (
  workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
  organization VARCHAR(64) DEFAULT '' NOT NULL,
  name VARCHAR(128) NOT NULL,
  version INTEGER NOT NULL,
  "key" VARCHAR(250) NOT NULL,
  value TEXT,
  CONSTRAINT skill_version_tags_version_fkey FOREIGN KEY(workspace, organization, name, version) REFERENCES skill_versions (workspace, organization, name, version) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT skill_version_tags_pk PRIMARY KEY (workspace, organization, name, version, "key")
);
CREATE TABLE skill_aliases (
  workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
  organization VARCHAR(64) DEFAULT '' NOT NULL,
  name VARCHAR(128) NOT NULL,
  alias VARCHAR(256) NOT NULL,
  version INTEGER NOT NULL,
  CONSTRAINT skill_aliases_skill_fkey FOREIGN KEY(workspace, organization, name) REFERENCES skills (workspace, organization, name) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT skill_aliases_pk PRIMARY KEY (workspace, organization, name, alias)
);
CREATE TABLE issue_categories (
  issue_id VARCHAR(36) NOT NULL,
  category_hash VARCHAR(64) NOT NULL,
  category TEXT NOT NULL,
  CONSTRAINT issue_categories_pk PRIMARY KEY (issue_id, category_hash),
  CONSTRAINT fk_issue_categories_issue_id FOREIGN KEY(issue_id) REFERENCES issues (issue_id) ON DELETE CASCADE
);
ALTER TABLE issues ADD COLUMN last_seen_timestamp BIGINT;
ALTER TABLE issues ADD COLUMN last_updated_by VARCHAR(255);
ALTER TABLE issues ADD COLUMN metadata TEXT;
CREATE INDEX ix_skill_versions_latest_lookup ON skill_versions (workspace, organization, name, status, version);
CREATE INDEX ix_skill_versions_digest ON skill_versions (workspace, organization, name, digest);
CREATE INDEX index_issue_categories_hash ON issue_categories (category_hash);
CREATE INDEX index_issues_experiment_last_seen ON issues (experiment_id, last_seen_timestamp);
CREATE INDEX index_issues_experiment_updated ON issues (experiment_id, last_updated_timestamp);
UPDATE alembic_version SET version_num = 'f4a9b2c7d1e6';
