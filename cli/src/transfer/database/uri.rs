//! URIs of databases, in the form that `SQLAlchemy` and MLflow use.

use std::path::PathBuf;
use std::str::FromStr;

/// The address of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseUri {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A `PostgreSQL` server, as a URL without a driver.
    #[cfg(feature = "sql-servers")]
    Postgres(String),
    /// A `MySQL` or `MariaDB` server, as a URL without a driver.
    #[cfg(feature = "sql-servers")]
    MySql(String),
}

impl FromStr for DatabaseUri {
    type Err = String;

    /// Parses a URI: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://…`, `mysql://…`.
    /// A driver after the scheme, such as `postgresql+psycopg2`, is ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!(
                "{text} is no database URI, such as sqlite:///mlflow.db or postgresql://user@host/mlflow"
            ));
        };
        let dialect = scheme.split_once('+').map_or(scheme, |(dialect, _)| dialect);
        match dialect {
            "sqlite" => match rest.strip_prefix('/') {
                Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
                _ => Err(format!("{text} names no file. Write sqlite:///mlflow.db, or sqlite:////path/to/mlflow.db")),
            },
            #[cfg(feature = "sql-servers")]
            "postgresql" | "postgres" => Ok(Self::Postgres(format!("postgresql://{rest}"))),
            #[cfg(feature = "sql-servers")]
            "mysql" | "mariadb" => Ok(Self::MySql(format!("mysql://{rest}"))),
            #[cfg(not(feature = "sql-servers"))]
            "postgresql" | "postgres" | "mysql" | "mariadb" => Err(format!(
                "this program was built without drivers for {dialect}. Use a released program, or build it with \
                 --features sql-servers"
            )),
            _ => Err(format!("{scheme} is not supported. Databases are sqlite, postgresql, and mysql")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_sqlalchemy() {
        for (uri, path) in [("sqlite:///mlflow.db", "mlflow.db"), ("sqlite:////data/mlflow.db", "/data/mlflow.db")] {
            assert_eq!(uri.parse(), Ok(DatabaseUri::Sqlite(PathBuf::from(path))));
        }
        for uri in ["mlflow.db", "sqlite://", "sqlite:///", "mssql://host/db"] {
            assert!(uri.parse::<DatabaseUri>().is_err(), "{uri}");
        }
    }
}
